#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/client/node/node_view.h"
#include "zeus/http/client.h"
#include "zeus/wire/node/lease.h"

namespace zeus::client {

// Where a node daemon answers.
struct DaemonAddress {
  std::string url{};           // "unix:/run/zeusd/zeusd.sock", "https://host:4938"
  std::string token{};         // Empty: the daemon knows this process by its user.
  std::string board_socket{};  // Beside the socket; empty over TCP, which has no boards.
};
// The address of a daemon whose Unix socket is this file.
DaemonAddress AddressOfSocket(const std::string& path);

// The calls of a node daemon. A call without an answer is repeated for five seconds, as long as a
// restart of the daemon takes; the daemon finds a lease again that it made already, by the id of
// the request. An answer that stands for a refusal is an error with its code and sentence.
// Thread-safe. The clock must outlive it.
class NodeDaemonClient {
 public:
  using Send = std::function<Result<http::Reply>(const http::Call&)>;
  static constexpr Seconds kRestartTime{5};

  // Does not connect yet.
  static Result<std::unique_ptr<NodeDaemonClient>> Create(const DaemonAddress& address,
                                                          Clock& clock);
  // With another transport: for tests.
  NodeDaemonClient(Send send, Clock& clock) : send_(std::move(send)), clock_(clock) {}

  Result<NodeView> Node();
  Result<Json> WhoAmI();
  Result<std::vector<ReadingView>> Readings();
  Result<Json> Job(const std::string& id);

  // The daemon remembers leases for ten minutes after their end.
  enum class Ended { kLeaveOut, kInclude };
  Result<std::vector<wire::LeaseView>> Leases(Ended ended = Ended::kLeaveOut);
  Result<wire::LeaseView> Lease(const std::string& id);
  // The knobs are set when it returns. Gives the request an id where it has none.
  Result<wire::LeaseView> CreateLease(wire::LeaseSpec spec);
  Result<wire::LeaseView> ReplaceRequests(const std::string& id,
                                          const std::vector<wire::KnobRequest>& requests);
  // kNotFound when the lease has ended.
  Status Heartbeat(const std::string& id);
  // The knobs are back when it returns. A lease that is gone already has been ended.
  Status EndLease(const std::string& id);

  // Asks once, without waiting for a restart: whether a daemon answers.
  Status CheckAnswers();

 private:
  Result<Json> Ask(const http::Call& call);
  Result<Json> Get(const std::string& path);

  const Send send_;
  Clock& clock_;
};

}  // namespace zeus::client
