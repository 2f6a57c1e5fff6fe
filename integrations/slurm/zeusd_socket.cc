#include "integrations/slurm/zeusd_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace zeus::slurm {
namespace {

constexpr std::size_t kLargestAnswer = std::size_t{1} << 20;

// A socket that is closed when the scope is left.
class Socket {
 public:
  Socket() : descriptor_(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool Await(int descriptor, short events, const Deadline& deadline) {
  for (;;) {
    const int left = deadline.Left();
    if (left == 0) return false;
    struct pollfd entry {
      .fd = descriptor, .events = events, .revents = 0
    };
    const int ready = ::poll(&entry, 1, left);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

std::string Reason(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

bool Connect(int descriptor, const std::string& path, const Deadline& deadline, std::string& why) {
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    why = "the path of the socket is too long";
    return false;
  }
  std::memcpy(static_cast<void*>(address.sun_path), path.c_str(), path.size() + 1);
  for (;;) {
    if (::connect(descriptor, reinterpret_cast<const struct sockaddr*>(&address),
                  sizeof(address)) == 0)
      return true;
    // A Unix socket whose queue is full says EAGAIN and cannot be waited for.
    if (errno != EAGAIN && errno != EINTR) break;
    if (deadline.Left() == 0) break;
    (void)::poll(nullptr, 0, 1);
  }
  why = Reason("cannot connect");
  return false;
}

bool SendAll(int descriptor, std::string_view text, const Deadline& deadline, std::string& why) {
  while (!text.empty()) {
    const ssize_t sent = ::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EINTR) {
      continue;
    } else if (errno != EAGAIN) {
      why = Reason("cannot send");
      return false;
    } else if (!Await(descriptor, POLLOUT, deadline)) {
      why = "it takes no request in time";
      return false;
    }
  }
  return true;
}

bool IsSameIgnoringCase(std::string_view one, std::string_view lower_case) {
  return std::equal(one.begin(), one.end(), lower_case.begin(), lower_case.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

std::optional<std::size_t> ToNumber(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The length of the body that a head announces; nullopt where the connection's end is its end.
std::optional<std::size_t> BodyLength(std::string_view head) {
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos &&
        IsSameIgnoringCase(line.substr(0, colon), "content-length"))
      return ToNumber(line.substr(colon + 1));
  }
  return std::nullopt;
}

enum class Answer { kIncomplete, kComplete, kMalformed };

// Takes an answer apart as soon as all of it is there.
Answer Parse(std::string_view text, bool at_end, DaemonReply& reply) {
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return at_end ? Answer::kMalformed : Answer::kIncomplete;
  const std::string_view head = text.substr(0, end);
  if (head.size() < 12 || !head.starts_with("HTTP/1.")) return Answer::kMalformed;
  const auto status = ToNumber(head.substr(9, 3));
  if (!status) return Answer::kMalformed;
  const std::string_view body = text.substr(end + 4);
  const auto length = BodyLength(head);
  if (length ? body.size() < *length : !at_end)
    return at_end ? Answer::kMalformed : Answer::kIncomplete;
  reply.status = static_cast<int>(*status);
  reply.body = std::string(length ? body.substr(0, *length) : body);
  return Answer::kComplete;
}

bool IsNothingYet(ssize_t received) { return received < 0 && (errno == EAGAIN || errno == EINTR); }

const char* WhyMalformed(std::string_view text) {
  return text.empty() ? "it closed the connection" : "its answer is no HTTP";
}

bool Fail(std::string& why, std::string reason) {
  why = std::move(reason);
  return false;
}

bool Receive(int descriptor, const Deadline& deadline, DaemonReply& reply, std::string& why) {
  std::string text;
  for (;;) {
    char buffer[16384];
    const ssize_t received =
        ::recv(descriptor, static_cast<void*>(buffer), sizeof(buffer), MSG_DONTWAIT);
    const bool nothing_yet = IsNothingYet(received);
    if (received < 0 && !nothing_yet) return Fail(why, Reason("cannot receive"));
    if (!nothing_yet) {
      text.append(static_cast<const char*>(buffer), static_cast<std::size_t>(received));
      const Answer answer = Parse(text, received == 0, reply);
      if (answer == Answer::kComplete) return true;
      if (answer == Answer::kMalformed || text.size() > kLargestAnswer)
        return Fail(why, WhyMalformed(text));
    }
    if (deadline.Left() == 0 || (nothing_yet && !Await(descriptor, POLLIN, deadline)))
      return Fail(why, "it does not answer in time");
  }
}

}  // namespace

int Deadline::Left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
  return static_cast<int>(std::max<long>(0, left));
}

// A request has these parts. NOLINTNEXTLINE(readability-function-size)
std::optional<DaemonReply> AskDaemon(const std::string& socket, std::string_view method,
                                     std::string_view target, std::string_view body,
                                     const Deadline& deadline, std::string& why) {
  const Socket connection;
  if (connection.get() < 0) {
    why = Reason("cannot make a socket");
    return std::nullopt;
  }
  if (!Connect(connection.get(), socket, deadline, why)) return std::nullopt;
  std::string request(method);
  request.append(" ").append(target).append(
      " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
  if (!body.empty()) request.append("Content-Type: application/json\r\n");
  request.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
  request.append(body);
  DaemonReply reply;
  if (!SendAll(connection.get(), request, deadline, why)) return std::nullopt;
  if (!Receive(connection.get(), deadline, reply, why)) return std::nullopt;
  return reply;
}

std::string SocketOfNode(std::string_view pattern, std::string_view node) {
  std::string path(pattern);
  for (std::size_t at = path.find("%n"); at != std::string::npos; at = path.find("%n", at)) {
    path.replace(at, 2, node);
    at += node.size();
  }
  return path;
}

}  // namespace zeus::slurm
