#include "examples/pipeline/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "zeus/base/clock.h"

namespace zeus::examples {
namespace {

// When a stage fails, the job's process terminates the others within this time (launch.cc).
constexpr Seconds kTerminationTimeout{10};

// A stage that lost its neighbour waits until the job terminates it. If it ended by itself, the job
// might report its exit code instead of that of the stage that failed first.
Error PeerHasEnded() {
  SystemClock().SleepFor(kTerminationTimeout);
  return {ErrorCode::kUnavailable, "another stage of the pipeline has ended"};
}

}  // namespace

Result<std::pair<int, int>> Channel::Pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Error{ErrorCode::kUnavailable, "no sockets for the stages: too many files are open"};
  return std::pair(ends[0], ends[1]);
}

Status Channel::Send(std::span<const double> numbers) {
  auto bytes = std::as_bytes(numbers);
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return PeerHasEnded();
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return Ok();
}

Status Channel::Receive(std::span<double> numbers) {
  auto bytes = std::as_writable_bytes(numbers);
  while (!bytes.empty()) {
    const ssize_t received = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return PeerHasEnded();
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return Ok();
}

Status SocketCollective::Reduce(std::span<double> values, const Combine& combine) {
  if (rank_ != 0) {
    ZEUS_RETURN_IF_ERROR(peers_.front()->Send(values));
    return peers_.front()->Receive(values);
  }
  std::vector<double> theirs(values.size());
  for (const auto& peer : peers_) {
    ZEUS_RETURN_IF_ERROR(peer->Receive(theirs));
    std::ranges::transform(values, theirs, values.begin(), combine);
  }
  for (const auto& peer : peers_) ZEUS_RETURN_IF_ERROR(peer->Send(values));
  return Ok();
}

Status SocketCollective::Sum(std::span<double> values) {
  return Reduce(values, [](double a, double b) { return a + b; });
}

Status SocketCollective::Max(std::span<double> values) {
  return Reduce(values, [](double a, double b) { return std::max(a, b); });
}

// A broadcast is a sum to which only the root contributes values other than zero.
Status SocketCollective::Broadcast(std::span<double> values, int root) {
  if (rank_ != root) std::ranges::fill(values, 0.0);
  return Sum(values);
}

}  // namespace zeus::examples
