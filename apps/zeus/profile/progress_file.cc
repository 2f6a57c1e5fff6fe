#include "apps/zeus/profile/progress_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "apps/zeus/profile/progress_pattern.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

// Longer lines are no numbers.
constexpr std::uint64_t kTail = 256;
constexpr std::uint64_t kPiece = 1 << 16;
constexpr std::uint64_t kMostAtOnce = 1 << 24;

std::string_view LastLine(std::string_view text) {
  text = Trim(text);
  const auto line_end = text.find_last_of("\r\n");
  return line_end == std::string_view::npos ? text : Trim(text.substr(line_end + 1));
}

std::string ReadFrom(int file, std::uint64_t begin, std::uint64_t end) {
  std::string text(end - begin, '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), static_cast<off_t>(begin));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

}  // namespace

std::optional<double> ProgressFile::Count() {
  // Without waiting: what is no file (any more) may be a pipe that nobody writes to.
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::string tail = ReadFrom(file.get(), size - std::min(size, kTail), size);
  if (const auto number = ParseCount(LastLine(tail))) return number;

  if (size < counted_bytes_) counted_bytes_ = lines_ = 0;  // It was begun again.
  // The rest of a file that grew by more is counted the next time.
  const std::uint64_t until = std::min(size, counted_bytes_ + kMostAtOnce);
  while (counted_bytes_ < until) {
    const std::string piece =
        ReadFrom(file.get(), counted_bytes_, std::min(until, counted_bytes_ + kPiece));
    if (piece.empty()) break;
    lines_ += static_cast<std::uint64_t>(std::ranges::count(piece, '\n'));
    counted_bytes_ += piece.size();
  }
  return static_cast<double>(lines_);
}

}  // namespace zeus::cli
