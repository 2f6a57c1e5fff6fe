#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::http {

// Decides who may open a Unix socket. nullopt: as the process makes files.
struct SocketPermissions {
  std::optional<::mode_t> mode{};
  std::optional<::uid_t> owner{};
  std::optional<::gid_t> group{};
};

// The file of a Unix socket on which this process listens. The destructor removes the file, unless
// another socket has taken its place. One owner.
class SocketFile {
 public:
  // The folder is made when it is missing, and a socket on which nobody answers is replaced.
  // Nobody can connect before the permissions hold. kUnavailable when another server listens there,
  // kPermissionDenied when the folder or the owner is out of reach.
  static Result<std::unique_ptr<SocketFile>> Listen(const std::string& path,
                                                    const SocketPermissions& permissions);
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

  // Returns the listening socket, once; the caller closes it to stop listening.
  std::unique_ptr<FileDescriptor> TakeDescriptor() { return std::move(descriptor_); }

 private:
  SocketFile(std::string path, std::unique_ptr<FileDescriptor> descriptor);

  const std::string path_;
  std::unique_ptr<FileDescriptor> descriptor_;
  const FileDescriptor file_;  // Keeps the number of the file from being given to another one.
};

// A listening socket that somebody else made.
struct ForeignListener {
  std::unique_ptr<FileDescriptor> descriptor{};  // A duplicate, close-on-exec.
  int family = 0;                                // AF_UNIX, AF_INET or AF_INET6
  std::string path{};  // The name of a Unix socket in the file system; empty where it has none.
};

// Returns kInvalidArgument for descriptors that are no listening stream sockets.
Result<ForeignListener> DuplicateListener(int descriptor);

}  // namespace zeus::http
