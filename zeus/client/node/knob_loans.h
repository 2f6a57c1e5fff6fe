#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/client/node/node_daemon_client.h"
#include "zeus/wire/node/lease.h"

namespace zeus::client {

// The knobs that this process has borrowed from the daemon: one lease for each, held by this
// process, so that they end with it whatever happens. Over TCP, where the daemon does not know the
// process, a thread keeps them alive, and they end soon after it. All leases end with this object;
// in a fork()ed child it does nothing, since the leases are its parent's. Thread-safe; client and
// clock must outlive it.
class KnobLoans {
 public:
  KnobLoans(NodeDaemonClient& client, Clock& clock);
  ~KnobLoans();
  KnobLoans(const KnobLoans&) = delete;
  KnobLoans& operator=(const KnobLoans&) = delete;

  // Sets the knob as demanded, in the place of an earlier demand of this process. A lease that has
  // ended meanwhile is taken anew.
  Result<wire::KnobView> Ask(const wire::KnobKey& key, const wire::Demand& demand);
  // Returns what holds on a borrowed knob now; nullopt for one that is not borrowed. kUnavailable
  // when the lease was ended by somebody else.
  Result<std::optional<wire::KnobView>> Look(const wire::KnobKey& key);
  // Gives the knob back. Does nothing for one that is not borrowed.
  Status GiveBack(const wire::KnobKey& key);

 private:
  Result<wire::LeaseView> Renew(const wire::KnobKey& key, const wire::KnobRequest& request);
  void KeepAlive(const wire::LeaseView& lease);
  TimePoint Beat();

  NodeDaemonClient& client_;
  Clock& clock_;
  const unsigned fork_generation_;
  std::mutex calls_;  // One change at a time.
  std::mutex mutex_;  // Guards the rest; not held during a call.
  std::map<wire::KnobKey, std::string> leases_{};
  Seconds beat_interval_{0};  // 0: no lease needs heartbeats.
  std::unique_ptr<Ticker> heart_{};
};

}  // namespace zeus::client
