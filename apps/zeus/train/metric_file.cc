#include "apps/zeus/train/metric_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kLongestReportLine = 64 * 1024;  // No report is longer.

}  // namespace

Status MetricFile::BeginAnew() {
  read_ = 0;
  pending_.clear();
  std::error_code error;
  const auto found = std::filesystem::status(path_, error);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found))
    return Error{ErrorCode::kInvalidArgument,
                 "--metric-file takes a regular file: " + Quote(path_.string()) + " is none"};
  held_.emplace(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!held_->valid()) return FileError(path_, errno);
  if (::flock(held_->get(), LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorCode::kConflict,
                 "another run reports to " + Quote(path_.string()) +
                     ": give each a file of its own, with {trial} in its name"};
  if (::ftruncate(held_->get(), 0) != 0) return FileError(path_, errno);
  return Ok();
}

std::vector<std::string> MetricFile::NewLines() {
  std::vector<std::string> lines;
  // A pipe must not make us wait for who writes to it.
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return lines;
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
    CutLines(lines);
  }
  return lines;
}

void MetricFile::CutLines(std::vector<std::string>& lines) {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    std::string line(Trim(std::string_view(pending_).substr(begin, end - begin)));
    if (!line.empty()) lines.push_back(std::move(line));
  }
  pending_.erase(0, begin);
  // A line without end is no report: its beginning is not kept.
  if (pending_.size() > kLongestReportLine) pending_.erase(0, pending_.size() - kLongestReportLine);
}

std::vector<std::string> MetricFile::LastLines() {
  std::vector<std::string> lines = NewLines();
  std::string rest(Trim(pending_));
  if (!rest.empty()) lines.push_back(std::move(rest));
  pending_.clear();
  return lines;
}

}  // namespace zeus::cli
