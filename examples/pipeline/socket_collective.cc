#include "examples/pipeline/socket_collective.h"

#include <algorithm>

namespace zeus::examples {

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
