#include "apps/zeus/profile/progress_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>

#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

// Longer lines are no numbers.
constexpr std::uint64_t kTail = 256;

std::string_view LastLine(std::string_view text) {
  text = Trim(text);
  const auto line_end = text.find_last_of("\r\n");
  return line_end == std::string_view::npos ? text : Trim(text.substr(line_end + 1));
}

std::string ReadFrom(std::ifstream& file, std::uint64_t begin, std::uint64_t end) {
  std::string text(end - begin, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

}  // namespace

std::optional<double> ProgressFile::Count() {
  std::ifstream file(path_, std::ios::binary | std::ios::ate);
  const auto position = static_cast<std::streamoff>(file.tellg());
  if (!file || position <= 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(position);
  const std::string tail = ReadFrom(file, size - std::min(size, kTail), size);
  const auto number = ParseDouble(LastLine(tail));
  if (number.ok()) return number.value();

  if (size < counted_bytes_) counted_bytes_ = lines_ = 0;  // It was begun again.
  constexpr std::uint64_t kPiece = 1 << 16;
  while (counted_bytes_ < size) {
    const std::string piece =
        ReadFrom(file, counted_bytes_, std::min(size, counted_bytes_ + kPiece));
    if (piece.empty()) break;
    lines_ += static_cast<std::uint64_t>(std::ranges::count(piece, '\n'));
    counted_bytes_ += piece.size();
  }
  return static_cast<double>(lines_);
}

}  // namespace zeus::cli
