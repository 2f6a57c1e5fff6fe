#include "apps/zeus/train/metric_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

namespace zeus::cli {

Status MetricFile::BeginAnew() {
  read_ = 0;
  pending_.clear();
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status)) return Ok();
  if (!std::filesystem::is_regular_file(status))
    return Error{ErrorCode::kInvalidArgument,
                 "--metric-file takes a regular file: " + Quote(path_.string()) + " is none"};
  if (!std::filesystem::remove(path_, error) && error) return FileError(path_, error.value());
  return Ok();
}

void MetricFile::Read() {
  // A pipe must not make us wait for who writes to it.
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (inode_ != status.st_ino || size < read_) {
    read_ = 0;
    pending_.clear();
    inode_ = status.st_ino;
  }
  std::array<char, 65536> piece{};
  ssize_t got = 0;
  while ((got = ::pread(file.get(), piece.data(), piece.size(), static_cast<::off_t>(read_))) > 0) {
    read_ += static_cast<std::uint64_t>(got);
    pending_.append(piece.data(), static_cast<std::size_t>(got));
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
