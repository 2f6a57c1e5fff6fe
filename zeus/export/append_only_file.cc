#include "zeus/export/append_only_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr mode_t kReadableByAll = 0644;

// Keeps other processes from appending while a record is written or taken back.
class ScopedLock {
 public:
  explicit ScopedLock(int file) : file_(file) {
    while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~ScopedLock() { ::flock(file_, LOCK_UN); }
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;

 private:
  const int file_;
};

std::optional<off_t> FileSize(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return std::nullopt;
  return status.st_size;
}

// The end of the last whole line in the first `size` bytes.
off_t EndOfLastLine(int file, off_t size) {
  std::array<char, 4096> block{};
  while (size > 0) {
    const off_t begin = std::max<off_t>(0, size - static_cast<off_t>(block.size()));
    const ssize_t got = ::pread(file, block.data(), static_cast<std::size_t>(size - begin), begin);
    if (got <= 0) return size;
    const std::string_view text(block.data(), static_cast<std::size_t>(got));
    const auto newline = text.rfind('\n');
    if (newline != std::string_view::npos) return begin + static_cast<off_t>(newline) + 1;
    size = begin;
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<AppendOnlyFile>> AppendOnlyFile::Open(const std::filesystem::path& path,
                                                             std::string_view header,
                                                             std::string_view expected_start) {
  const int descriptor =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kReadableByAll);
  if (descriptor < 0) return FileError(path, errno);
  std::unique_ptr<AppendOnlyFile> file(new AppendOnlyFile(path, descriptor));
  ZEUS_RETURN_IF_ERROR(file->Prepare(header, expected_start));
  return file;
}

Status AppendOnlyFile::Prepare(std::string_view header, std::string_view expected_start) {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return FileError(path_, errno);
  regular_ = S_ISREG(status.st_mode);
  const std::string header_line = header.empty() ? "" : std::string(header) + '\n';
  if (!regular_) return header.empty() ? Ok() : WriteWhole(header_line);

  const ScopedLock lock(file_.get());
  const off_t size = FileSize(file_.get()).value_or(0);
  if (size == 0) return header.empty() ? Ok() : WriteWhole(header_line);
  const std::string_view expected = expected_start.empty() ? header_line : expected_start;
  std::string start(expected.size(), '\0');
  const ssize_t got = ::pread(file_.get(), start.data(), start.size(), 0);
  if (got < 0) return FileError(path_, errno);
  start.resize(static_cast<std::size_t>(got));
  if (start != expected) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} exists and does not begin with {}: move it away or choose another "
                             "file",
                             Printable(path_.string()), Quote(Trim(expected)))};
  }
  const off_t whole = EndOfLastLine(file_.get(), size);
  if (whole < size && ::ftruncate(file_.get(), whole) != 0) return FileError(path_, errno);
  return Ok();
}

Status AppendOnlyFile::Append(std::string_view record) {
  const std::string line = std::string(record) + '\n';
  if (!regular_) return WriteWhole(line);
  const ScopedLock lock(file_.get());
  return WriteWhole(line);
}

Status AppendOnlyFile::WriteWhole(std::string_view line) {
  const auto size_before = FileSize(file_.get());
  ssize_t written = 0;
  do {
    written = ::write(file_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return Ok();

  // A short write says nothing of its cause, which is nearly always a full disk.
  const int cause = written < 0 ? errno : ENOSPC;
  if (written > 0 && regular_ && size_before && ::ftruncate(file_.get(), *size_before) != 0)
    return FileError(path_, errno).While("take back half a line");
  return FileError(path_, cause);
}

}  // namespace zeus
