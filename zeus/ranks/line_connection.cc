#include "zeus/ranks/line_connection.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "zeus/base/json.h"

namespace zeus {
namespace {

constexpr int kBacklog = 1024;

void SetOption(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof value);
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Error SocketError(const std::string& what, int error) {
  return {ErrorCode::kUnavailable, fmt::format("{}: {}", what, std::strerror(error))};
}

}  // namespace

LineConnection::LineConnection(int descriptor) : socket_(descriptor) {
  constexpr int kIdle = 15;
  constexpr int kInterval = 5;
  constexpr int kProbes = 3;
  constexpr int kUnacknowledged = 30'000;  // Milliseconds.
  SetOption(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kIdle);
  SetOption(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kInterval);
  SetOption(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  SetOption(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledged);
}

Result<std::unique_ptr<LineConnection>> LineConnection::Connect(const std::string& host,
                                                                std::uint16_t port) {
  ::addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  ::addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0)
    return Error{ErrorCode::kUnavailable, fmt::format("{}: {}", host, ::gai_strerror(failed))};
  const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  const int descriptor =
      ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (descriptor < 0) return SocketError("socket", errno);
  auto connection = std::make_unique<LineConnection>(descriptor);
  if (::connect(descriptor, list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS)
    return SocketError(fmt::format("connect to {}:{}", host, port), errno);
  return connection;
}

void LineConnection::Send(const Json& message) { outgoing_ += JsonText(message) + "\n"; }

bool LineConnection::Write() {
  while (!outgoing_.empty()) {
    const ssize_t sent = ::send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    // While the connection is being made, too.
    if (sent < 0) return WouldBlock(errno) || errno == ENOTCONN;
    outgoing_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

bool LineConnection::Read() {
  constexpr std::size_t kPiece = 65536;
  std::array<char, kPiece> piece{};
  while (true) {
    const ssize_t got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (got < 0) return WouldBlock(errno) || errno == ENOTCONN;
    if (got == 0) return false;
    incoming_.append(piece.data(), static_cast<std::size_t>(got));
    if (incoming_.size() > longest_line_ && incoming_.find('\n') == std::string::npos) return false;
  }
}

bool LineConnection::Pump() {
  if (ended_) return false;
  const bool written = Write();
  ended_ = !Read() || !written;
  return !ended_;
}

std::optional<Json> LineConnection::Next() {
  const std::size_t end = incoming_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  auto message = ParseJson(std::string_view(incoming_).substr(0, end));
  incoming_.erase(0, end + 1);
  if (message.ok() && message.value().is_object()) return std::move(message).value();
  ended_ = true;
  incoming_.clear();
  return std::nullopt;
}

Result<std::unique_ptr<LineListener>> LineListener::Open(std::uint16_t port) {
  int descriptor = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  const bool six = descriptor >= 0;
  if (!six) descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (descriptor < 0) return SocketError("socket", errno);
  std::unique_ptr<LineListener> listener(new LineListener(descriptor, port));
  SetOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  ::sockaddr_storage address{};
  ::socklen_t size = 0;
  if (six) {
    SetOption(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    const ::sockaddr_in6 any{.sin6_family = AF_INET6,
                             .sin6_port = htons(port),
                             .sin6_flowinfo = 0,
                             .sin6_addr = IN6ADDR_ANY_INIT,
                             .sin6_scope_id = 0};
    std::memcpy(&address, &any, size = sizeof any);
  } else {
    ::sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(port);
    std::memcpy(&address, &any, size = sizeof any);
  }
  auto* const generic = reinterpret_cast<::sockaddr*>(&address);
  if (::bind(descriptor, generic, size) != 0 || ::listen(descriptor, kBacklog) != 0 ||
      ::getsockname(descriptor, generic, &size) != 0)
    return SocketError(fmt::format("listen on port {}", port), errno);
  std::uint16_t bound = 0;  // At the same place in both kinds of addresses.
  std::memcpy(&bound, reinterpret_cast<char*>(&address) + offsetof(::sockaddr_in, sin_port),
              sizeof bound);
  listener->port_ = ntohs(bound);
  return listener;
}

std::unique_ptr<LineConnection> LineListener::Accept() {
  const int descriptor = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return descriptor < 0 ? nullptr : std::make_unique<LineConnection>(descriptor);
}

}  // namespace zeus
