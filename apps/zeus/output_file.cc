#include "apps/zeus/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"

namespace zeus::cli {
namespace {

namespace fs = std::filesystem;

constexpr ::mode_t kMode = 0666;  // Less the user's umask.

bool IsSpecial(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status);
}

// The target of a symbolic link: the link stays, its target is replaced.
fs::path Target(const fs::path& path) {
  std::error_code failed;
  fs::path target = fs::weakly_canonical(path, failed);
  return failed ? path : target;
}

Error CannotWrite(const fs::path& path, int error_number) {
  return FileError(path, error_number).While("cannot write");
}

using WriteParts = std::function<Status(const WritePart& write_part)>;

Status WithPurpose(Status written) {
  if (!written.ok()) return std::move(written).error().While("cannot write");
  return written;
}

Status WriteInto(const fs::path& path, const WriteParts& write) {
  // Opening a pipe without a reader must fail instead of waiting for ever.
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return CannotWrite(path, errno);
  ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
  return WithPurpose(
      write([&](std::string_view part) { return WriteAll(file.get(), part, path); }));
}

}  // namespace

Status CheckWritable(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return CannotWrite(path, EISDIR);
  // A file that is write-protected is not replaced behind its owner's back.
  if (fs::exists(path, ignored) && ::access(path.c_str(), W_OK) != 0)
    return CannotWrite(path, errno);
  if (IsSpecial(path)) return Ok();
  // Whether a file can be made beside the target, as it will be to take the target's place.
  const fs::path target = Target(path);
  const fs::path trial =
      target.parent_path() / fmt::format(".{}.{}.trial", target.filename().string(), ::getpid());
  const FileDescriptor file(::open(trial.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT, kMode));
  if (!file.valid()) return CannotWrite(path, errno);
  ::unlink(trial.c_str());
  return Ok();
}

Status WriteWhole(const fs::path& path, std::string_view content) {
  return WriteWhole(path, [content](const WritePart& write_part) { return write_part(content); });
}

Status WriteWhole(const fs::path& path, const WriteParts& write) {
  return IsSpecial(path) ? WriteInto(path, write) : WithPurpose(ReplaceFile(Target(path), write));
}

Status Append(const fs::path& path, std::string_view header, std::string_view content) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMode));
  if (!file.valid()) return CannotWrite(path, errno);
  ::flock(file.get(), LOCK_EX);  // Given back when the file is closed; a pipe has none.
  struct ::stat state {};
  if (::fstat(file.get(), &state) != 0) return CannotWrite(path, errno);
  std::string text;
  if (state.st_size == 0) text += header;
  text += content;
  Status written = WithPurpose(WriteAll(file.get(), text, path));
  // Half a row would spoil the next one.
  if (!written.ok() && S_ISREG(state.st_mode)) (void)::ftruncate(file.get(), state.st_size);
  return written;
}

}  // namespace zeus::cli
