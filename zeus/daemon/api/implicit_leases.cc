#include "zeus/daemon/api/implicit_leases.h"

#include <algorithm>

#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

using wire::HolderKind;
using wire::LeaseRefusal;
using wire::LeaseState;
using wire::LeaseView;

constexpr const char* kName = "set without a lease";  // By a request of the reference.
constexpr std::size_t kMostKnown = 4096;

bool HasEnded(const LeaseView& lease) {
  return lease.state == LeaseState::kRestoring || lease.state == LeaseState::kEnded;
}

}  // namespace

HolderKind ImplicitLeases::HolderOf(const Call& call) const {
  const std::string wanted = LowerCase(Trim(call.request.zeus_hold));
  const bool may_stand = call.grant.admin();
  if (wanted == "forever" || (may_stand && wanted.empty())) return HolderKind::kStanding;
  if (call.caller->transport == Caller::Transport::kTcp) return HolderKind::kTtl;
  return call.caller->process || call.caller->pidfd ? HolderKind::kProcess
                                                    : HolderKind::kConnection;
}

// The lease of an earlier request, also of one before the daemon was started again.
std::optional<LeaseView> ImplicitLeases::Find(const Call& call, const Key& key) {
  if (const auto known = leases_.find(key); known != leases_.end()) {
    auto found = daemon_.book().View(*call.caller, call.grant, known->second);
    if (auto* view = std::get_if<LeaseView>(&found); view != nullptr && !HasEnded(*view))
      return std::move(*view);
    leases_.erase(known);
    return std::nullopt;
  }
  for (LeaseView& view : daemon_.book().List(*call.caller, call.grant)) {
    const bool ours = view.name == kName && view.subject == key.subject &&
                      view.holder == key.holder && view.pid == key.pid && !HasEnded(view) &&
                      !view.knobs.empty() && view.knobs.front().request.key.device == key.device;
    if (ours) return std::move(view);
  }
  return std::nullopt;
}

OrRefusal<std::string> ImplicitLeases::Create(const Call& call, const Key& key,
                                              std::vector<wire::KnobRequest> requests) {
  wire::LeaseSpec spec{.name = kName, .holder = key.holder, .requests = std::move(requests)};
  if (key.holder == HolderKind::kTtl) spec.ttl = daemon_.configuration()->compat_hold;
  const auto created = daemon_.Create(*call.caller, call.grant, spec);
  if (const auto* refusal = std::get_if<LeaseRefusal>(&created)) return *refusal;
  if (leases_.size() >= kMostKnown) leases_.clear();  // They are found again.
  return leases_[key] = std::get<LeaseView>(created).id;
}

OrRefusal<std::string> ImplicitLeases::Apply(const Call& call, const std::string& device,
                                             const std::vector<Change>& changes) {
  Key key{.subject = call.caller->subject, .holder = HolderOf(call), .device = device};
  if (key.holder == HolderKind::kStanding && !call.grant.admin())
    return LeaseRefusal{.kind = LeaseRefusal::Kind::kForbidden,
                        .message = "Zeus-Hold: forever is for administrators"};
  if (key.holder == HolderKind::kProcess && call.caller->process) {
    key.pid = call.caller->process->pid;
    key.start = call.caller->process->start_ticks;
  }
  const std::lock_guard lock(mutex_);
  const auto lease = Find(call, key);
  std::vector<wire::KnobRequest> requests;
  if (lease)
    for (const wire::KnobView& knob : lease->knobs) requests.push_back(knob.request);
  const auto before = requests;
  for (const Change& change : changes) {
    std::erase_if(requests, [&](const auto& request) { return request.key.knob == change.knob; });
    if (change.demand)
      requests.push_back(
          {.key = {.device = device, .knob = change.knob}, .demand = *change.demand});
  }
  if (!lease && requests.empty()) return std::string();
  if (!lease) return Create(call, key, std::move(requests));
  if (lease->holder == HolderKind::kTtl)
    (void)daemon_.book().Heartbeat(*call.caller, call.grant, lease->id);
  if (requests == before) return lease->id;
  if (requests.empty()) {
    leases_.erase(key);
    const auto ended = daemon_.book().End(*call.caller, call.grant, lease->id);
    if (const auto* refusal = std::get_if<LeaseRefusal>(&ended)) return *refusal;
    return lease->id;
  }
  const auto changed = daemon_.book().Replace(*call.caller, call.grant, lease->id, requests);
  if (const auto* refusal = std::get_if<LeaseRefusal>(&changed)) return *refusal;
  return leases_[key] = lease->id;
}

}  // namespace zeus::daemon
