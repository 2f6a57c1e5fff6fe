#include "apps/zeus/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kFewestColumns = 40;
constexpr std::size_t kUsualColumns = 100;

std::size_t FindWidth(int descriptor, const Environment& environment) {
  if (const auto told = environment("COLUMNS")) {
    if (const auto columns = ParseUnsigned(*told); columns.ok() && columns.value() > 0)
      return columns.value();
  }
  const auto size = SizeOfTerminal(descriptor);
  return size ? size->columns : kUsualColumns;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kInAscii = {{
    {"±", "+-"}, {"°", " deg "}, {"µ", "u"},   {"²", "^2"},   {"§", "section "}, {"…", "..."},
    {"×", "x"},  {"·", "."},     {"η", "eta"}, {"β", "beta"}, {"Δ", "delta"},    {"−", "-"},
    {"–", "-"},  {"→", "->"},    {"─", "-"},   {"│", "|"},    {"└", "+"},        {"╎", "|"},
    {"█", "#"},  {"▓", "%"},     {"▒", "+"},   {"░", "."},
}};

// The end of the last whole character of UTF-8: what follows is the beginning of one.
std::size_t WholeCharacters(std::string_view text) {
  std::size_t end = text.size();
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;  // The middle of a character.
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    if (length > back) end = text.size() - back;
    break;
  }
  return end;
}

// A stream of the C library that passes on in ASCII what is written to it.
class AsciiStream {
 public:
  explicit AsciiStream(int descriptor) : descriptor_(descriptor) {}

  static ::ssize_t Write(void* self, const char* data, std::size_t size) {
    return static_cast<AsciiStream*>(self)->Write({data, size}) ? static_cast<::ssize_t>(size) : 0;
  }

 private:
  bool Write(std::string_view data) {
    rest_ += data;
    const std::size_t whole = WholeCharacters(rest_);
    const std::string text = InAscii(std::string_view(rest_).substr(0, whole));
    rest_.erase(0, whole);
    for (std::size_t at = 0; at < text.size();) {
      const ::ssize_t written = ::write(descriptor_, text.data() + at, text.size() - at);
      if (written <= 0) return false;
      at += static_cast<std::size_t>(written);
    }
    return true;
  }

  int descriptor_;
  std::string rest_;  // The beginning of a character that has not been written whole.
};

std::FILE* OpenAsciiStream(int descriptor, int buffering) {
  // Never destroyed: the C library flushes its streams after the destructors of statics have run.
  static auto& streams = *new std::array{AsciiStream(0), AsciiStream(1), AsciiStream(2)};
  const ::cookie_io_functions_t functions{
      .read = nullptr, .write = AsciiStream::Write, .seek = nullptr, .close = nullptr};
  std::FILE* const stream =
      ::fopencookie(&streams.at(static_cast<std::size_t>(descriptor)), "w", functions);
  if (stream != nullptr) std::setvbuf(stream, nullptr, buffering, BUFSIZ);
  return stream;
}

// Those of Painted(), the only control sequences in text for people: they change how it looks, and
// nothing else.
void PutBackColours(std::string& text) {
  for (const std::string_view colour : {"31m", "32m", "33m", "0m"}) {
    const std::string escaped = fmt::format("\\x1b[{}", colour);
    const std::string sequence = fmt::format("\x1b[{}", colour);
    for (auto at = text.find(escaped); at != std::string::npos;
         at = text.find(escaped, at + sequence.size()))
      text.replace(at, escaped.size(), sequence);
  }
}

}  // namespace

std::optional<TerminalSize> SizeOfTerminal(int descriptor) {
  ::winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return TerminalSize{.columns = size.ws_col, .rows = size.ws_row};
}

Terminal DescribeTerminal(int descriptor, const Environment& environment) {
  Terminal terminal;
  terminal.is_terminal = ::isatty(descriptor) == 1;
  terminal.redraws = terminal.is_terminal && environment("TERM") != "dumb";
  terminal.colours = terminal.redraws && environment("NO_COLOR").value_or("").empty();
  terminal.columns = std::max(FindWidth(descriptor, environment), kFewestColumns);
  return terminal;
}

bool LocaleIsUnicode(const Environment& environment) {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale = LowerCase(environment(variable).value_or(""));
    if (locale.empty()) continue;
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return true;
}

std::string InAscii(std::string_view text) {
  std::string ascii;
  for (std::size_t at = 0; at < text.size();) {
    const auto* const known = std::ranges::find_if(
        kInAscii, [&](const auto& pair) { return text.substr(at).starts_with(pair.first); });
    if (known != kInAscii.end()) {
      // "25 °C" has its blank already.
      const bool blank = known->second.starts_with(' ') && ascii.ends_with(' ');
      ascii += known->second.substr(blank ? 1 : 0);
      at += known->first.size();
    } else {
      ascii += text[at++];
    }
  }
  return ascii;
}

std::string Painted(std::string_view text, Colour colour, const Terminal& terminal) {
  if (!terminal.colours) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", static_cast<int>(colour), text);
}

void Show(std::FILE* stream, const std::string& text) {
  constexpr std::size_t kIndent = 2;
  const Terminal terminal = DescribeTerminal(stream == stderr ? STDERR_FILENO : STDOUT_FILENO);
  std::string safe = ForTerminal(text);
  if (terminal.colours) PutBackColours(safe);
  if (terminal.is_terminal) safe = WrappedText(safe, terminal.columns, kIndent);
  std::fputs(safe.c_str(), stream);
}

void WriteInAscii() {
  if (std::FILE* output =
          OpenAsciiStream(STDOUT_FILENO, ::isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF))
    stdout = output;
  if (std::FILE* error = OpenAsciiStream(STDERR_FILENO, _IONBF)) stderr = error;
}

}  // namespace zeus::cli
