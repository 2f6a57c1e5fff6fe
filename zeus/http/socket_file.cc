#include "zeus/http/socket_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::http {
namespace {

namespace fs = std::filesystem;

Error CannotListen(const std::string& path, int failure) {
  const bool refused = failure == EACCES || failure == EPERM;
  return {refused ? ErrorCode::kPermissionDenied : ErrorCode::kUnavailable,
          fmt::format("cannot listen on {}: {}", Printable(path),
                      std::generic_category().message(failure))};
}

::sockaddr_un AddressOf(const std::string& path) {
  ::sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

std::unique_ptr<FileDescriptor> NewSocket() {
  return std::make_unique<FileDescriptor>(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Removes the socket that an earlier server left behind. Only a refused connection proves that
// nobody listens: a busy server's queue may be full, and the permissions may forbid to ask.
Status RemoveStaleSocket(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_socket(path, ignored)) return Ok();
  const auto probe = NewSocket();
  if (!probe->valid()) return CannotListen(path, errno);
  const ::sockaddr_un address = AddressOf(path);
  const int outcome =
      ::connect(probe->get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address);
  if (outcome != 0 && errno == ENOENT) return Ok();
  if (outcome != 0 && (errno == EACCES || errno == EPERM)) return CannotListen(path, errno);
  if (outcome == 0 || errno != ECONNREFUSED)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot listen on {}: another server does", Printable(path))};
  fs::remove(path, ignored);
  return Ok();
}

// Everybody may pass through a folder that is made here: the socket has permissions of its own.
Status MakeFolder(const fs::path& folder) {
  std::error_code failure;
  if (folder.empty() || fs::exists(folder, failure)) return Ok();
  if (fs::create_directories(folder, failure); !failure)
    fs::permissions(folder, fs::perms(0755), failure);
  if (failure) return CannotListen(folder.string(), failure.value());
  return Ok();
}

// Returns an errno, 0 when all went well.
int Permit(const std::string& path, const SocketPermissions& permissions) {
  constexpr auto kUnchanged = static_cast<::uid_t>(-1);
  const bool owned = permissions.owner || permissions.group;
  if (owned && ::lchown(path.c_str(), permissions.owner.value_or(kUnchanged),
                        permissions.group.value_or(kUnchanged)) != 0)
    return errno;
  if (permissions.mode && ::chmod(path.c_str(), *permissions.mode) != 0) return errno;
  return 0;
}

}  // namespace

SocketFile::SocketFile(std::string path, std::unique_ptr<FileDescriptor> descriptor)
    : path_(std::move(path)),
      descriptor_(std::move(descriptor)),
      file_(::open(path_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)) {}

SocketFile::~SocketFile() {
  // By now the path may belong to the socket of another server.
  struct ::stat ours {};
  struct ::stat present {};
  if (::fstat(file_.get(), &ours) == 0 && ::lstat(path_.c_str(), &present) == 0 &&
      ours.st_dev == present.st_dev && ours.st_ino == present.st_ino)
    ::unlink(path_.c_str());
}

Result<std::unique_ptr<SocketFile>> SocketFile::Listen(const std::string& path,
                                                       const SocketPermissions& permissions) {
  ZEUS_RETURN_IF_ERROR(MakeFolder(fs::path(path).parent_path()));
  ZEUS_RETURN_IF_ERROR(RemoveStaleSocket(path));
  auto descriptor = NewSocket();
  const ::sockaddr_un address = AddressOf(path);
  if (!descriptor->valid() ||
      ::bind(descriptor->get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0)
    return CannotListen(path, errno);
  const int socket = descriptor->get();
  std::unique_ptr<SocketFile> file(new SocketFile(path, std::move(descriptor)));
  // The kernel refuses connections until listen().
  if (const int failure = Permit(path, permissions)) return CannotListen(path, failure);
  if (::listen(socket, SOMAXCONN) != 0) return CannotListen(path, errno);
  return file;
}

Result<ForeignListener> DuplicateListener(int descriptor) {
  const auto option = [descriptor](int name) {
    int value = 0;
    ::socklen_t size = sizeof value;
    return ::getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
  };
  ForeignListener listener{.family = option(SO_DOMAIN)};
  const bool known =
      listener.family == AF_UNIX || listener.family == AF_INET || listener.family == AF_INET6;
  if (!known || option(SO_TYPE) != SOCK_STREAM || option(SO_ACCEPTCONN) != 1)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("descriptor {} is no listening stream socket", descriptor)};
  listener.descriptor = std::make_unique<FileDescriptor>(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!listener.descriptor->valid()) return CannotListen("an inherited socket", errno);
  ::sockaddr_un address{};
  ::socklen_t size = sizeof address;
  const bool named =
      listener.family == AF_UNIX &&
      ::getsockname(descriptor, reinterpret_cast<::sockaddr*>(&address), &size) == 0 &&
      size > offsetof(::sockaddr_un, sun_path) && address.sun_path[0] != '\0';
  if (named)
    listener.path.assign(address.sun_path,
                         ::strnlen(address.sun_path, size - offsetof(::sockaddr_un, sun_path)));
  return listener;
}

}  // namespace zeus::http
