#include "apps/zeus/train/metric_file.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus::cli {

Status MetricFile::BeginAnew() {
  read_ = 0;
  pending_.clear();
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status)) return Ok();
  if (!std::filesystem::is_regular_file(status)) return FileError(path_, EINVAL);
  if (!std::filesystem::remove(path_, error) && error) return FileError(path_, error.value());
  return Ok();
}

void MetricFile::Read() {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return;
  file.seekg(static_cast<std::streamoff>(read_));
  std::array<char, 65536> piece{};
  while (file.read(piece.data(), piece.size()) || file.gcount() > 0) {
    read_ += static_cast<std::uint64_t>(file.gcount());
    pending_.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
}

std::vector<std::string> MetricFile::NewLines() {
  Read();
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    std::string line(Trim(std::string_view(pending_).substr(begin, end - begin)));
    if (!line.empty()) lines.push_back(std::move(line));
  }
  pending_.erase(0, begin);
  return lines;
}

std::vector<std::string> MetricFile::LastLines() {
  std::vector<std::string> lines = NewLines();
  std::string rest(Trim(pending_));
  if (!rest.empty()) lines.push_back(std::move(rest));
  pending_.clear();
  return lines;
}

}  // namespace zeus::cli
