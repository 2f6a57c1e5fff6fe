#include "zeus/client/node/knob_loans.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>
#include <vector>

#include "zeus/base/log.h"
#include "zeus/base/process.h"

namespace zeus::client {
namespace {

// Heartbeats come after this part of the time that a lease is given.
constexpr double kBeatShare = 1.0 / 3;

Result<wire::KnobView> ViewOf(const wire::LeaseView& lease, const wire::KnobKey& key) {
  for (const wire::KnobView& knob : lease.knobs)
    if (knob.request.key == key) return knob;
  return Error{ErrorCode::kUnavailable,
               fmt::format("the node daemon does not tell what holds on {}", key.device)};
}

bool HasEnded(const wire::LeaseView& lease) {
  return lease.state == wire::LeaseState::kEnded || lease.state == wire::LeaseState::kRestoring;
}

}  // namespace

KnobLoans::KnobLoans(NodeDaemonClient& client, Clock& clock)
    : client_(client), clock_(clock), fork_generation_((WatchForks(), ForkGeneration())) {}

KnobLoans::~KnobLoans() {
  if (ForkGeneration() != fork_generation_) {
    (void)heart_.release();  // Its thread is the parent's.
    return;
  }
  heart_.reset();
  for (const auto& [key, lease] : leases_)
    if (const Status ended = client_.EndLease(lease); !ended.ok())
      log::Warning("give the {} of {} back: {}", wire::Name(key.knob), key.device,
                   ended.error().message);
}

Result<wire::LeaseView> KnobLoans::Renew(const wire::KnobKey& key,
                                         const wire::KnobRequest& request) {
  std::string lease;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = leases_.find(key); found != leases_.end()) lease = found->second;
  }
  if (!lease.empty()) {
    auto replaced = client_.ReplaceRequests(lease, {request});
    const bool gone = !replaced.ok() && replaced.error().code == ErrorCode::kNotFound;
    if (!gone) return replaced;
  }
  return client_.CreateLease(
      {.name = fmt::format("zeus, {}", wire::Name(key.knob)), .requests = {request}});
}

Result<wire::KnobView> KnobLoans::Ask(const wire::KnobKey& key, const wire::Demand& demand) {
  if (ForkGeneration() != fork_generation_)
    return Error{
        ErrorCode::kUnavailable,
        "the knob was borrowed by the process that forked this one: open the devices after "
        "fork()"};
  const std::lock_guard one_call(calls_);
  ZEUS_TRY(const wire::LeaseView lease, Renew(key, {.key = key, .demand = demand}));
  {
    const std::lock_guard lock(mutex_);
    leases_.insert_or_assign(key, lease.id);
  }
  KeepAlive(lease);
  return ViewOf(lease, key);
}

Result<std::optional<wire::KnobView>> KnobLoans::Look(const wire::KnobKey& key) {
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    const auto found = leases_.find(key);
    if (found == leases_.end()) return std::optional<wire::KnobView>();
    id = found->second;
  }
  ZEUS_TRY(const wire::LeaseView lease, client_.Lease(id));
  if (HasEnded(lease))
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the node daemon ended the lease of the {} of {}: {}",
                             wire::Name(key.knob), key.device, lease.end_reason)};
  ZEUS_TRY(wire::KnobView view, ViewOf(lease, key));
  return std::optional<wire::KnobView>(std::move(view));
}

Status KnobLoans::GiveBack(const wire::KnobKey& key) {
  const std::lock_guard one_call(calls_);
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    const auto found = leases_.find(key);
    if (found == leases_.end()) return Ok();
    id = found->second;
  }
  ZEUS_RETURN_IF_ERROR(client_.EndLease(id));
  const std::lock_guard lock(mutex_);
  leases_.erase(key);
  return Ok();
}

void KnobLoans::KeepAlive(const wire::LeaseView& lease) {
  if (!lease.expires_in || heart_ != nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    beat_interval_ = *lease.expires_in * kBeatShare;
  }
  try {
    heart_ = std::make_unique<Ticker>("zeus-leases", [this] { return Beat(); });
  } catch (const std::system_error&) {
    log::Warning("leases at the node daemon will expire: {}", NoThreadError().message);
  }
}

TimePoint KnobLoans::Beat() {
  std::vector<std::string> leases;
  Seconds interval{};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, lease] : leases_) leases.push_back(lease);
    interval = beat_interval_;
  }
  // A lease that has ended shows at the next look at its knob.
  for (const std::string& lease : leases) (void)client_.Heartbeat(lease);
  return clock_.Now() + interval;
}

}  // namespace zeus::client
