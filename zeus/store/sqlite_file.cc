#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/store/sqlite_connection.h"

namespace zeus {
namespace {

constexpr off_t kSmallestPage = 512;

Status MakeFolders(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return Ok();
  ZEUS_RETURN_IF_ERROR(MakeFolders(folder.parent_path()));
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) return FileError(folder, errno);
  return Ok();
}

// A new name is on disk once its folder is.
Status SyncFolder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.empty() ? "." : folder;
  const FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.valid() || ::fsync(descriptor.get()) != 0) return FileError(path, errno);
  return Ok();
}

}  // namespace

bool IsOnlyReadable(const std::filesystem::path& file) {
  if (::access(file.c_str(), R_OK) != 0) return false;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  return ::access(file.c_str(), W_OK) != 0 || ::access(folder.c_str(), W_OK) != 0;
}

Status PrepareSqliteFile(const std::filesystem::path& file) {
  ZEUS_RETURN_IF_ERROR(MakeFolders(file.parent_path()));
  // SQLite gives the files beside it the same permissions.
  const FileDescriptor created(
      ::open(file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (created.valid()) return SyncFolder(file.parent_path());
  // It is not opened to look into it: closing it would drop the locks of SQLite connections that
  // this process has to the same file (POSIX).
  if (errno != EEXIST) return FileError(file, errno);
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return FileError(file, errno);
  // SQLite looks for its mark in the first page, and takes a file without one for empty.
  const bool too_short = status.st_size > 0 && status.st_size < kSmallestPage;
  if (!S_ISREG(status.st_mode) || too_short)
    return Error{ErrorCode::kInvalidArgument,
                 file.string() + ": is not a database: choose another file"};
  if (::access(file.c_str(), W_OK) != 0) return FileError(file, errno);
  return Ok();
}

}  // namespace zeus
