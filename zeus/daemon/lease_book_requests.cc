#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/daemon/lease_book_state.h"

// The requests of callers: what is checked, in which order, and what changes then.
namespace zeus::daemon {
namespace {

using wire::KnobKey;
using wire::KnobRequest;
using wire::LeaseRefusal;
using wire::LeaseView;
using Kind = LeaseRefusal::Kind;

constexpr Seconds kTryLeasesAgain(1);

// One line for each request, so that every knob's history can be found.
void NoteRequests(const Caller& caller, const std::string& event, const LeaseRecord& lease,
                  Change& change) {
  AuditEntry entry = EntryFor(caller, event);
  entry.lease = lease.id;
  entry.job = lease.holder.job;
  entry.reason = lease.name;
  entry.outcome = "ok";
  if (lease.requests.empty()) change.audit.push_back(entry);
  for (const HeldRequest& held : lease.requests) {
    entry.knob = held.request.key;
    entry.to = wire::ToText(held.request.demand);
    change.audit.push_back(entry);
  }
}

// Says who holds the knob, but to nobody else's user whose it is.
LeaseRefusal Held(const Claim& claim, const Lease& holder, const KnobKey& knob,
                  const Caller& caller, const Grant& grant) {
  std::string whose = "another user";
  if (grant.admin()) whose = Printable(claim.subject);
  if (holder.record.owner.Is(caller)) whose = "yours";
  const std::string& since = holder.record.since;
  const std::string time = since.size() >= 16 ? since.substr(11, 5) + " UTC" : since;
  LeaseRefusal refusal{.kind = Kind::kHeld};
  refusal.message = fmt::format(
      "the {} of {} is held by lease {} of {} since {}; ask again or take an at_most request",
      wire::Words(knob.knob), knob.device, Quote(claim.name), whose, time);
  refusal.key = knob;
  refusal.since = since;
  refusal.lease_class = Name(claim.lease_class);
  return refusal;
}

DeskAnswers AskDesk(const KnobDesk& desk, const std::vector<KnobRequest>& requests) {
  DeskAnswers answers;
  for (const KnobRequest& request : requests) {
    answers.facts.push_back(desk.Find(request.key));
    answers.ready.push_back(answers.facts.back() ? desk.Ready(request.key.device) : Ok());
  }
  return answers;
}

// The requests that the lease does not have yet.
std::vector<KnobRequest> NewOnes(const LeaseRecord& lease,
                                 const std::vector<KnobRequest>& requests) {
  std::vector<KnobRequest> sets;
  for (const KnobRequest& request : requests) {
    const bool kept = std::ranges::any_of(
        lease.requests, [&request](const HeldRequest& held) { return held.request == request; });
    if (!kept) sets.push_back(request);
  }
  return sets;
}

Refused CheckKnobs(const Grant& grant, const std::vector<KnobRequest>& requests,
                   const DeskAnswers& answers) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const KnobKey& knob = requests[i].key;
    if (!answers.facts[i])
      return Refuse(
          Kind::kUnknown,
          fmt::format("this machine has no {} of {}", wire::Words(knob.knob), Quote(knob.device)),
          knob);
  }
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (Refused refusal = CheckBounds(grant, *answers.facts[i], requests[i])) return refusal;
  return std::nullopt;
}

}  // namespace

AuditEntry EntryFor(const Caller& caller, std::string event) {
  AuditEntry entry{.event = std::move(event), .subject = caller.subject};
  entry.pid = caller.process ? caller.process->pid : 0;
  entry.executable = caller.executable;
  return entry;
}

LeaseRefusal UnknownLease(std::string_view lease) {
  return *Refuse(Kind::kUnknown, fmt::format("there is no lease {} of yours", Quote(lease)));
}

LeaseRefusal EndedLease(const Lease& lease) {
  return *Refuse(Kind::kEnded, fmt::format("lease {} has ended: {}", lease.record.id,
                                           Name(lease.end_reason.value_or(EndReason::kDeleted))));
}

Lease* LeaseBook::State::FindOwn(const Caller& caller, const Grant& grant, std::string_view id) {
  Lease* lease = table_.Find(id);
  if (lease == nullptr) return nullptr;
  return grant.admin() || lease->record.owner.Is(caller) ? lease : nullptr;
}

// The checks that need neither the lock nor the desk.
Refused LeaseBook::State::CheckRequests(const Caller& caller, const Grant& grant,
                                        wire::LeaseClass lease_class,
                                        const std::vector<KnobRequest>& requests) const {
  if (Refused refusal = CheckShape(requests, options_.most_requests)) return refusal;
  if (Refused refusal = CheckScopes(grant, lease_class, requests)) return refusal;
  std::set<std::string> devices;
  if (grant.devices_of_jobs && options_.devices_of) devices = options_.devices_of(caller);
  return CheckDevices(grant, devices, requests);
}

// The checks of requests that hold later, when nobody can be refused any more.
Refused LeaseBook::State::CheckFallback(const Caller& caller, const Grant& grant,
                                        wire::LeaseClass lease_class,
                                        const std::vector<KnobRequest>& fallback) const {
  if (fallback.empty()) return std::nullopt;
  if (Refused refusal = CheckRequests(caller, grant, lease_class, fallback)) return refusal;
  return CheckKnobs(grant, fallback, AskDesk(desk_, fallback));
}

Refused LeaseBook::State::CheckQuota(const Caller& caller, const Grant& grant,
                                     const std::vector<KnobRequest>& requests) const {
  for (const KnobRequest& request : requests) {
    const auto wait = quota_.WaitFor(caller.subject, request.key,
                                     SetsPerSecond(grant, request.key.knob), clock_.Now());
    if (!wait) continue;
    auto refusal = Refuse(Kind::kQuota,
                          fmt::format("the {} of {} may be set {:g} times a second by you",
                                      wire::Words(request.key.knob), request.key.device,
                                      SetsPerSecond(grant, request.key.knob)),
                          request.key);
    refusal->retry_after = *wait;
    return refusal;
  }
  return std::nullopt;
}

Refused LeaseBook::State::CheckFree(const LeaseRecord& asking,
                                    const std::vector<KnobRequest>& requests, const Caller& caller,
                                    const Grant& grant) const {
  for (const KnobRequest& request : requests) {
    const Claim* claim = table_.FindConflict(asking, request);
    if (claim == nullptr) continue;
    return Held(*claim, *table_.Find(claim->lease), request.key, caller, grant);
  }
  return std::nullopt;
}

// The checks of the requests that are new to the lease, in the order of docs/daemon.md.
Refused LeaseBook::State::CheckSets(const LeaseRecord& lease,
                                    const std::vector<KnobRequest>& requests,
                                    const DeskAnswers& answers, const Caller& caller,
                                    const Grant& grant) const {
  const std::vector<KnobRequest> sets = NewOnes(lease, requests);
  Refused not_ready;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (std::ranges::find(sets, requests[i]) == sets.end()) continue;
    if (!answers.ready[i].ok() && !not_ready)
      not_ready = Refuse(Kind::kUnavailable, answers.ready[i].error().message, requests[i].key);
  }
  if (Refused refusal = CheckQuota(caller, grant, sets)) return refusal;
  if (not_ready) return not_ready;
  return CheckFree(lease, sets, caller, grant);
}

void LeaseBook::State::TakeSets(const Caller& caller, const Grant& grant,
                                const std::vector<KnobRequest>& requests) {
  for (const KnobRequest& request : requests)
    quota_.Take(caller.subject, request.key, SetsPerSecond(grant, request.key.knob), clock_.Now());
}

LeaseRecord LeaseBook::State::NewRecord(const Caller& caller, const wire::LeaseSpec& spec,
                                        Holder holder) {
  LeaseRecord record{.name = spec.name, .owner = LeaseOwner::Of(caller)};
  do record.id = fmt::format("lease_{:014x}", options_.entropy());
  while (table_.Find(record.id) != nullptr);
  record.lease_class = spec.lease_class;
  record.ttl = spec.ttl;
  if (holder.kind == wire::HolderKind::kTtl && !record.ttl) record.ttl = options_.default_ttl;
  record.holder = std::move(holder);
  record.request_id = spec.request_id;
  record.fallback = spec.fallback;
  record.since = zeus::ToText(clock_.WallNow());
  return record;
}

OrRefusal<LeaseView> LeaseBook::State::Create(const Caller& caller, const Grant& grant,
                                              const wire::LeaseSpec& spec) {
  {
    const std::lock_guard lock(mutex_);
    if (const Lease* lease = table_.FindRequest(caller, spec.request_id))
      return table_.View(*lease, Now());
  }
  if (Refused refusal = CheckRequests(caller, grant, spec.lease_class, spec.requests))
    return *refusal;
  auto holder = HolderFor(caller, grant, spec, options_);
  if (auto* refusal = std::get_if<LeaseRefusal>(&holder)) return *refusal;
  const DeskAnswers answers = AskDesk(desk_, spec.requests);
  if (Refused refusal = CheckKnobs(grant, spec.requests, answers)) return *refusal;
  if (Refused refusal = CheckFallback(caller, grant, spec.lease_class, spec.fallback))
    return *refusal;
  return Do([&](Change& change) -> OrRefusal<LeaseView> {
    if (const Lease* lease = table_.FindRequest(caller, spec.request_id))
      return table_.View(*lease, change.now);
    const bool full = table_.present() >= options_.most_leases;
    if (full || table_.CountOf(caller.subject) >= grant.leases) {
      auto refusal = Refuse(Kind::kQuota,
                            full ? fmt::format("there are {} leases already", options_.most_leases)
                                 : fmt::format("you have {} leases already", grant.leases));
      refusal->retry_after = kTryLeasesAgain;
      return *refusal;
    }
    LeaseRecord record = NewRecord(caller, spec, std::move(std::get<Holder>(holder)));
    if (Refused refusal = CheckSets(record, spec.requests, answers, caller, grant)) return *refusal;
    TakeSets(caller, grant, spec.requests);
    for (const KnobRequest& request : spec.requests)
      record.requests.push_back({.request = request});
    if (record.ttl) record.deadline = change.now + *record.ttl;
    table_.ForgetEnded(change.now - options_.ended_kept);
    const Lease& lease = table_.Add(std::move(record), change);
    NoteRequests(caller, "lease created", lease.record, change);
    return table_.View(lease, change.now);
  });
}

OrRefusal<LeaseView> LeaseBook::State::Replace(const Caller& caller, const Grant& grant,
                                               std::string_view id,
                                               const std::vector<KnobRequest>& requests,
                                               const std::optional<Renewal>& renewal) {
  wire::LeaseClass lease_class{};
  {
    const std::lock_guard lock(mutex_);
    const Lease* lease = FindOwn(caller, grant, id);
    if (lease == nullptr) return UnknownLease(id);
    if (!lease->live()) return EndedLease(*lease);
    lease_class = lease->record.lease_class;
  }
  if (Refused refusal = CheckRequests(caller, grant, lease_class, requests)) return *refusal;
  const DeskAnswers answers = AskDesk(desk_, requests);
  if (Refused refusal = CheckKnobs(grant, requests, answers)) return *refusal;
  if (renewal)
    if (Refused refusal = CheckFallback(caller, grant, lease_class, renewal->fallback))
      return *refusal;
  return Do([&](Change& change) -> OrRefusal<LeaseView> {
    Lease* lease = FindOwn(caller, grant, id);
    if (lease == nullptr) return UnknownLease(id);
    if (!lease->live()) return EndedLease(*lease);
    if (Refused refusal = CheckSets(lease->record, requests, answers, caller, grant))
      return *refusal;
    TakeSets(caller, grant, NewOnes(lease->record, requests));
    if (renewal) {
      lease->record.ttl = renewal->ttl;
      lease->record.deadline = change.now + renewal->ttl;
      lease->record.fallback = renewal->fallback;
      lease->record.fell_back = false;
    }
    table_.Replace(*lease, requests, change);
    NoteRequests(caller, "lease replaced", lease->record, change);
    return table_.View(*lease, change.now);
  });
}

OrRefusal<LeaseView> LeaseBook::State::HandOver(const Caller& caller, const Grant& grant,
                                                std::string_view id, const Holder& holder) {
  if (holder.kind != wire::HolderKind::kProcess || !holder.process)
    return *Refuse(Kind::kMalformed, "pid: a lease can be handed to a process only");
  const auto owner = options_.owner_of(*holder.process);
  const bool allowed = owner && (grant.admin() || (caller.uid && owner == caller.uid));
  return Do([&](Change& change) -> OrRefusal<LeaseView> {
    Lease* lease = FindOwn(caller, grant, id);
    if (lease == nullptr) return UnknownLease(id);
    if (!lease->live()) return EndedLease(*lease);
    if (!allowed)
      return *Refuse(Kind::kForbidden, fmt::format("process {} is not one of yours, or has ended",
                                                   holder.process->pid));
    if (lease->record.holder.kind == wire::HolderKind::kStanding && !grant.admin())
      return *Refuse(Kind::kForbidden, "a standing lease needs the scope admin");
    table_.ChangeHolder(*lease, holder, change);
    AuditEntry entry = EntryFor(caller, "lease handed over");
    entry.lease = lease->record.id;
    entry.to = fmt::format("process {}", holder.process->pid);
    entry.outcome = "ok";
    change.audit.push_back(std::move(entry));
    return table_.View(*lease, change.now);
  });
}

OrRefusal<LeaseView> LeaseBook::State::End(const Caller& caller, const Grant& grant,
                                           std::string_view id, EndReason reason) {
  return Do([&](Change& change) -> OrRefusal<LeaseView> {
    Lease* lease = FindOwn(caller, grant, id);
    if (lease == nullptr) return UnknownLease(id);
    if (lease->record.holder.kind == wire::HolderKind::kStanding && !grant.admin())
      return *Refuse(Kind::kForbidden, "a standing lease needs the scope admin");
    table_.BeginEnd(*lease, reason, change);
    return table_.View(*lease, change.now);
  });
}

}  // namespace zeus::daemon
