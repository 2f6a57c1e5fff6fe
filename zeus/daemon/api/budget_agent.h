#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/budget/messages.h"
#include "zeus/budget/node_lease.h"
#include "zeus/daemon/api/daemon.h"
#include "zeus/http/client.h"

namespace zeus::daemon {

// Keeps the GPUs of this node within a cluster's power budget: reports to the server that shares it
// out and holds its grants as one lease of class "site". From the first moment on the devices are
// capped at the fallback, and again whenever no grant comes in time. One owner; Step() is called by
// one thread. The daemon must outlive it.
class BudgetAgent {
 public:
  struct Options {
    std::string server{};             // The address, for people.
    std::string node{};               // The name of this node in the budget.
    std::optional<Watts> fallback{};  // Before the first grant; nullopt: the lowest limit.
    // Whether a service manager starts the daemon again, or puts the fallback in force, within
    // seconds of its death.
    bool guarded = false;
  };
  using Send = std::function<Result<http::Reply>(const http::Call&)>;

  BudgetAgent(Daemon& daemon, Send send, Options options);

  // Caps the devices at the fallback, unless a grant from before the start still holds.
  Status Begin();
  // Reports and applies the answer. Returns when to come again.
  TimePoint Step();

 private:
  budget::NodeReport MakeReport();
  // Nothing for a device that has no power limit any more.
  std::optional<budget::DeviceReport> ReportDevice(const budget::DeviceCap& held,
                                                   const std::optional<wire::LeaseView>& own) const;
  std::optional<wire::LeaseView> OwnLease() const;
  Status Hold(const std::vector<budget::DeviceCap>& caps, Seconds left);
  Status WaitUntilHeld(const std::string& lease);
  TimePoint NoGrant(const std::string& why);
  void Tell();

  Daemon& daemon_;
  const Send send_;
  const Options options_;
  budget::NodeLease lease_;
  Random random_;
  std::vector<budget::DeviceCap> caps_{};  // The lease has them.
  Seconds ttl_{};
  std::optional<TimePoint> granted_{};
  int failures_ = 0;       // Reports without a grant, since the latest one.
  std::string trouble_{};  // Why the latest report brought no grant; else empty.
  std::string warned_{};
};

}  // namespace zeus::daemon
