#include "zeus/kubernetes/grpc_call.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"
#include "zeus/kubernetes/grpc_exchange.h"

namespace zeus::kubernetes {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;

Error Failed(std::string_view doing) {
  return {ErrorCode::kUnavailable,
          fmt::format("{}: {}", doing, std::generic_category().message(errno))};
}

Result<std::unique_ptr<FileDescriptor>> ConnectTo(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return InvalidArgument(fmt::format("the path of a socket has at most {} characters",
                                       sizeof(address.sun_path) - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  auto socket = std::make_unique<FileDescriptor>(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket->valid()) return Failed("socket");
  // A Unix socket connects at once, or its queue is full.
  if (::connect(socket->get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int reason = errno;
    if (reason == ENOENT || reason == EACCES || reason == EPERM)
      return FileError("connect", reason);
    return Error{ErrorCode::kUnavailable, reason == ECONNREFUSED
                                              ? "nobody listens there"
                                              : std::generic_category().message(reason)};
  }
  return socket;
}

// Drives the exchange over one connection until its end or the deadline.
class Conversation {
 public:
  Conversation(int socket, GrpcExchange& exchange) : socket_(socket), exchange_(exchange) {}

  Status Run(TimePoint deadline, const Clock& clock) {
    while (!exchange_.done()) {
      ZEUS_TRY(const std::string more, exchange_.TakeOutput());
      output_ += more;
      if (output_.size() > kMostPending)
        return Error{ErrorCode::kUnavailable, "the server does not read"};
      const Seconds left = deadline - clock.Now();
      if (left <= Seconds(0)) return Error{ErrorCode::kUnavailable, "no answer in time"};
      ZEUS_RETURN_IF_ERROR(Wait(left));
    }
    return Ok();
  }

 private:
  static constexpr std::size_t kMostPending = std::size_t{4} << 20;

  Status Wait(Seconds left) {
    const auto events = static_cast<short>(POLLIN | (output_.empty() ? 0 : POLLOUT));
    pollfd state{.fd = socket_, .events = events, .revents = 0};
    const int ready = ::poll(&state, 1, static_cast<int>(std::ceil(left.count() * 1000)));
    if (ready < 0) return errno == EINTR ? Ok() : Status(Failed("poll"));
    if ((state.revents & POLLOUT) != 0) ZEUS_RETURN_IF_ERROR(Send());
    if ((state.revents & (POLLIN | POLLHUP | POLLERR)) != 0) return Read();
    return Ok();
  }

  Status Send() {
    const ssize_t sent = ::send(socket_, output_.data(), output_.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR ? Ok() : Status(Failed("send"));
    output_.erase(0, static_cast<std::size_t>(sent));
    return Ok();
  }

  Status Read() {
    const ssize_t size = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (size < 0) return errno == EAGAIN || errno == EINTR ? Ok() : Status(Failed("recv"));
    if (size == 0) return Error{ErrorCode::kUnavailable, "the server closed the connection"};
    return exchange_.Receive({buffer_.data(), static_cast<std::size_t>(size)});
  }

  const int socket_;
  GrpcExchange& exchange_;
  std::string output_{};
  std::array<char, kPiece> buffer_{};
};

Result<std::string> CallOver(const GrpcCall& call, const Clock& clock) {
  const TimePoint deadline = clock.Now() + call.timeout;
  ZEUS_TRY(const auto socket, ConnectTo(call.socket));
  GrpcExchange exchange({.method = call.method, .message = call.message, .limit = call.limit});
  const auto conversation = std::make_unique<Conversation>(socket->get(), exchange);
  ZEUS_RETURN_IF_ERROR(conversation->Run(deadline, clock));
  return exchange.Answer();
}

}  // namespace

Result<std::string> CallGrpc(const GrpcCall& call, const Clock& clock) {
  auto answer = CallOver(call, clock);
  if (!answer.ok()) return std::move(answer).error().While(Printable(call.socket));
  return answer;
}

}  // namespace zeus::kubernetes
