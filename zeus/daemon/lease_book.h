#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/process.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/daemon/audit_log.h"
#include "zeus/daemon/caller.h"
#include "zeus/daemon/grant.h"
#include "zeus/daemon/knob_desk.h"
#include "zeus/wire/node/lease.h"

namespace zeus::daemon {

// A value, or the refusal that the caller gets instead.
template <class T>
using OrRefusal = std::variant<T, wire::LeaseRefusal>;

// Why a lease ended, as views and the audit log name it.
enum class EndReason { kDeleted, kHolderGone, kExpired, kRevoked, kJobEnded, kStopped, kFailed };
std::string_view Name(EndReason reason);  // "deleted", "holder gone", …

// The thing whose end is the end of a lease, as the book remembers it over a restart.
struct Holder {
  wire::HolderKind kind = wire::HolderKind::kProcess;
  std::uint64_t connection = 0;              // For kConnection.
  std::optional<ProcessIdentity> process{};  // For kProcess.
  std::shared_ptr<FileDescriptor> pidfd{};   // For kProcess, where there is one.
  std::string job{};                         // For kJob.
};

// All leases and their states (docs/daemon.md): who wants what on which knob until when. It knows
// no socket and no device; a KnobDesk makes the devices agree. Thread-safe. No call waits for a
// device. The referenced objects must outlive it.
class LeaseBook final : public ClaimSource {
 public:
  struct Options {
    std::filesystem::path state_file{};     // leases.json; empty: state is not kept.
    std::filesystem::path standing_file{};  // standing.json; empty: no standing leases.
    std::size_t most_leases = 4096;
    std::size_t most_requests = 256;  // A lease may have so many.
    Seconds default_ttl{15};
    Seconds ended_kept{600};
    // By the boot clock, so that deadlines count time asleep and survive a restart.
    BootClock boot_clock = CurrentBootTime;
    // UUIDs of the GPUs of the caller's jobs, for Grant::devices_of_jobs. Called without a lock.
    std::function<std::set<std::string>(const Caller&)> devices_of{};
    // Whether the caller may let a lease end with this job, unless it may register jobs itself.
    std::function<bool(const Caller&, std::string_view job)> belongs_to_job{};
    // Whether the job is registered and has not ended: nothing else would end a lease of it. Empty:
    // every job runs.
    std::function<bool(std::string_view job)> job_runs{};
    // Whether the holder of a lease from an earlier run still lives, and whose process one is.
    std::function<bool(const ProcessIdentity&)> is_running{};
    std::function<std::optional<uid_t>(const ProcessIdentity&)> owner_of{};
    Entropy entropy = SystemEntropy;  // For the ids of leases.
    // Called without a lock after every change of a lease's view, with its id, from any thread.
    std::function<void(const std::string& lease)> changed{};
    // Called likewise with the time from the end of a lease until its knobs were back.
    std::function<void(Seconds)> restored{};
  };

  // `audit` may be null.
  LeaseBook(Clock& clock, KnobDesk& desk, AuditLog* audit, Options options);
  ~LeaseBook() override;

  // The lease in the state "applying". A repeated request id of the same subject returns its lease.
  OrRefusal<wire::LeaseView> Create(const Caller& caller, const Grant& grant,
                                    const wire::LeaseSpec& spec);
  // The validity of a budget from now on.
  struct Renewal {
    Seconds ttl{};
    std::vector<wire::KnobRequest> fallback{};
  };
  // Replaces all requests, and the validity where that is given, or changes nothing.
  OrRefusal<wire::LeaseView> Replace(const Caller& caller, const Grant& grant,
                                     std::string_view lease,
                                     const std::vector<wire::KnobRequest>& requests,
                                     const std::optional<Renewal>& renewal = {});
  OrRefusal<std::monostate> Heartbeat(const Caller& caller, const Grant& grant,
                                      std::string_view lease);
  // Makes another process the holder. It must belong to the caller's user.
  OrRefusal<wire::LeaseView> HandOver(const Caller& caller, const Grant& grant,
                                      std::string_view lease, const Holder& holder);
  // Begins to end the lease; its view is "restoring" until the knobs are back.
  OrRefusal<wire::LeaseView> End(const Caller& caller, const Grant& grant, std::string_view lease,
                                 EndReason reason = EndReason::kDeleted);

  // Own ones, all with `admin`. Other people's leases are kUnknown, as if they did not exist.
  OrRefusal<wire::LeaseView> View(const Caller& caller, const Grant& grant,
                                  std::string_view lease) const;
  // Why the lease failed, or why its last replacement was taken back.
  std::optional<Error> TroubleOf(std::string_view lease) const;
  std::vector<wire::LeaseView> List(const Caller& caller, const Grant& grant) const;
  std::size_t CountOf(std::string_view subject) const;  // Leases that have not ended.

  // Every lease of a device, of a subject, or all; returns how many began to end. kStopped spares
  // standing leases and budgets with a fallback, which outlast the daemon: the latter fall back.
  struct Which {
    std::string device{};
    std::string subject{};
  };
  std::size_t EndAll(const Which& which, EndReason reason);
  // Ends leases that `allowed` no longer allows to their owners, after the configuration has
  // changed. Of an owner, also one of an earlier run, everything is known that rules ask for.
  std::size_t Revoke(const std::function<bool(const Caller&, const wire::LeaseView&)>& allowed);

  // Signs of the end of a holder.
  void ConnectionClosed(std::uint64_t connection);
  void ProcessEnded(std::string_view lease);
  void JobEnded(std::string_view job);

  // Ends what has expired, forgets what ended long ago, and writes heartbeats to the file. Returns
  // when to come again: after a second at most.
  TimePoint Step();

  // Leases of an earlier run of the daemon, before the first request: holders that still live are
  // adopted, heartbeats get one ttl of grace, the others end. Returns those whose process is to be
  // watched. kInvalidArgument for a file that cannot be used; standing leases are applied even
  // then.
  struct Adopted {
    std::string lease{};
    ProcessIdentity process{};
  };
  Result<std::vector<Adopted>> Load();

  Claims ClaimsOn(const wire::KnobKey& knob) const override;
  void Settled(const wire::KnobKey& knob, const KnobReport& report) override;
  std::vector<wire::KnobKey> ClaimedKnobs() const;
  // The claimed knobs, and those that are not back yet.
  std::vector<wire::KnobKey> TurnedKnobs() const;

  // How many leases there are, for metrics: by class and state, and how many ended by reason.
  struct Counts {
    std::map<std::pair<wire::LeaseClass, wire::LeaseState>, std::size_t> present{};
    std::map<EndReason, std::uint64_t> ended{};
    std::size_t restore_pending = 0;  // Knobs that could not be put back yet.
  };
  Counts CountLeases() const;

 private:
  class State;
  const std::unique_ptr<State> state_;
};

}  // namespace zeus::daemon
