#include "zeus/daemon/trusted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

namespace fs = std::filesystem;

using OpenFolder = std::unique_ptr<FileDescriptor>;

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

Error NotTrusted(const fs::path& path, std::string_view why) {
  return {ErrorCode::kPermissionDenied, fmt::format("{} {}", Printable(path.string()), why)};
}

bool IsTrusted(uid_t owner) { return owner == 0 || owner == ::geteuid(); }

bool OthersMayWrite(const struct stat& state) { return (state.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

Result<struct stat> TrustedState(const FileDescriptor& file, const fs::path& path) {
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) return FileError(path, errno);
  return state;
}

Status CheckTrustedFolder(const struct stat& state, bool sticky_is_safe, const fs::path& file) {
  if (!IsTrusted(state.st_uid))
    return NotTrusted(file, fmt::format("is below a folder of user {}, who could exchange it: use "
                                        "folders of root",
                                        state.st_uid));
  const bool sticky = sticky_is_safe && (state.st_mode & S_ISVTX) != 0;
  if (OthersMayWrite(state) && !sticky)
    return NotTrusted(
        file, "is below a folder that others may write, who could exchange it: chmod go-w it");
  return Ok();
}

// The folder and all above it, up to the root, belong to trusted users, so that nobody else can
// exchange what is in it. The way up is by "..", so symbolic links in the path do not matter.
Status CheckTrustedFolders(const FileDescriptor& folder, const fs::path& file) {
  ZEUS_TRY(struct stat state, TrustedState(folder, file));
  ZEUS_RETURN_IF_ERROR(CheckTrustedFolder(state, false, file));
  OpenFolder here;
  for (;;) {
    auto above = std::make_unique<FileDescriptor>(
        ::openat(here ? here->get() : folder.get(), "..", kFolderFlags));
    if (!above->valid()) return FileError(file, errno);
    ZEUS_TRY(const struct stat next, TrustedState(*above, file));
    if (next.st_dev == state.st_dev && next.st_ino == state.st_ino) return Ok();  // The root.
    ZEUS_RETURN_IF_ERROR(CheckTrustedFolder(next, true, file));
    here = std::move(above);
    state = next;
  }
}

Status CheckTrustedFile(const struct stat& state, Secrecy secrecy, const fs::path& path) {
  if (!S_ISREG(state.st_mode)) return NotTrusted(path, "is no regular file");
  if (!IsTrusted(state.st_uid))
    return NotTrusted(path, fmt::format("belongs to user {}: chown it to root", state.st_uid));
  if (secrecy == Secrecy::kOwnerOnly && (state.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return NotTrusted(path, "must be for its owner only: chmod 600 it");
  if (OthersMayWrite(state)) return NotTrusted(path, "may be written by others: chmod go-w it");
  return Ok();
}

Result<std::string> ReadTrusted(const FileDescriptor& file, const fs::path& path,
                                std::size_t limit) {
  std::string text;
  for (;;) {
    constexpr std::size_t kPart = 64 * 1024;
    const std::size_t had = text.size();
    text.resize(had + kPart);
    const ssize_t got = ::read(file.get(), text.data() + had, kPart);
    if (got < 0 && errno != EINTR) return FileError(path, errno);
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (text.size() > limit)
      return InvalidArgument(
          fmt::format("{}: larger than {} bytes", Printable(path.string()), limit));
    if (got == 0) return text;
  }
}

}  // namespace

Result<std::string> ReadStateFile(const fs::path& path, std::size_t limit) {
  const FileDescriptor file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.valid() && errno == ELOOP) return NotTrusted(path, "is a symbolic link: remove it");
  if (!file.valid()) return FileError(path, errno);
  ZEUS_TRY(const struct stat state, TrustedState(file, path));
  ZEUS_RETURN_IF_ERROR(CheckTrustedFile(state, Secrecy::kPublic, path));
  return ReadTrusted(file, path, limit);
}

Status WriteStateFile(const fs::path& path, std::string_view text, Durability durability) {
  std::string temporary = path.string() + ".XXXXXX";
  const FileDescriptor file(::mkostemp(temporary.data(), O_CLOEXEC));  // Readable by its owner.
  if (!file.valid()) return FileError(path, errno);
  Status written = WriteAll(file.get(), text, path);
  const bool syncs = durability == Durability::kSurvivesPowerLoss;
  if (written.ok() && syncs && ::fsync(file.get()) != 0) written = FileError(path, errno);
  if (written.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = FileError(path, errno);
  if (!written.ok()) ::unlink(temporary.c_str());
  return written;
}

Result<std::string> ReadTrustedFile(const fs::path& path, Secrecy secrecy, std::size_t limit) {
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const FileDescriptor folder(::open(parent.c_str(), kFolderFlags));
  if (!folder.valid()) return FileError(path, errno);
  // A pipe would block without O_NONBLOCK.
  const FileDescriptor file(::openat(folder.get(), path.filename().c_str(),
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.valid() && errno == ELOOP)
    return NotTrusted(path, "is a symbolic link: put the file itself there");
  if (!file.valid()) return FileError(path, errno);
  ZEUS_RETURN_IF_ERROR(CheckTrustedFolders(folder, path));
  ZEUS_TRY(const struct stat state, TrustedState(file, path));
  ZEUS_RETURN_IF_ERROR(CheckTrustedFile(state, secrecy, path));
  return ReadTrusted(file, path, limit);
}

}  // namespace zeus::daemon
