#include "apps/zeus/monitor/screen.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "apps/zeus/output.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/terminal_text.h"

namespace zeus::cli {
namespace {

// ECMA-48 and the terminals of the last forty years.
constexpr const char* kHideCursor = "\x1b[?25l";
constexpr const char* kShowCursor = "\x1b[?25h";
constexpr const char* kClearAll = "\x1b[H\x1b[2J";
constexpr const char* kClearLine = "\x1b[2K";
constexpr const char* kClearBelow = "\x1b[J";

constexpr TerminalSize kUsualSize = {.columns = 80, .rows = 24};

}  // namespace

Screen::Screen() : terminal_(DescribeTerminal(STDOUT_FILENO).redraws) {
  if (terminal_) fmt::print("{}", kHideCursor);
}

Screen::~Screen() {
  if (!terminal_) return;
  std::fputs(kShowCursor, stdout);
  std::fflush(stdout);
}

std::optional<TerminalSize> Screen::CurrentSize() const {
  if (!terminal_) return std::nullopt;
  return SizeOfTerminal(STDOUT_FILENO).value_or(kUsualSize);
}

std::optional<std::size_t> Screen::width() const {
  const auto size = CurrentSize();
  if (!size) return std::nullopt;
  return size->columns;
}

Status Screen::Show(const std::vector<std::string>& given) {
  // Names of devices are the drivers'.
  std::vector<std::string> rows;
  for (const std::string& row : given) rows.push_back(OneLineForTerminal(row));
  if (const auto size = CurrentSize()) {
    fmt::print("{}", Redraw(rows, *size));
  } else {
    for (const std::string& row : rows) PrintText(fmt::format("{}\n", row));
  }
  return FlushOutput();
}

std::string Screen::Redraw(const std::vector<std::string>& rows, TerminalSize size) {
  // One line stays free: the cursor is there. What does not fit cannot be redrawn.
  std::size_t count = rows.size();
  if (size.rows > 1 && count > size.rows - 1) count = size.rows - 1;
  std::string text;
  if (last_size_ && *last_size_ != size) {
    text = kClearAll;  // The terminal has moved the old rows to unknown places.
  } else if (shown_rows_ > 0) {
    text = fmt::format("\x1b[{}A", shown_rows_);
  }
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("\r{}{}\n", kClearLine, rows[i]);
  text += kClearBelow;
  last_size_ = size;
  shown_rows_ = count;
  return text;
}

}  // namespace zeus::cli
