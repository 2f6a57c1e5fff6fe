#include "zeus/daemon/lease_table.h"

#include <algorithm>
#include <utility>

#include "zeus/base/units.h"

namespace zeus::daemon {
namespace {

using wire::KnobKey;
using wire::KnobView;
using wire::LeaseState;

Claim ClaimOf(const LeaseRecord& lease, const HeldRequest& held) {
  return {.lease = lease.id,
          .name = lease.name,
          .subject = lease.owner.subject,
          .lease_class = lease.lease_class,
          .demand = held.request.demand,
          .order = held.order};
}

void EraseClaims(std::vector<Claim>& claims, const std::string& lease) {
  std::erase_if(claims, [&lease](const Claim& claim) { return claim.lease == lease; });
}

HeldRequest* RequestOn(std::vector<HeldRequest>& requests, const KnobKey& knob) {
  const auto found = std::ranges::find_if(
      requests, [&knob](const HeldRequest& held) { return held.request.key == knob; });
  return found == requests.end() ? nullptr : &*found;
}

void MarkForKeeping(const Lease& lease, Change& change) {
  if (lease.record.holder.kind == wire::HolderKind::kStanding)
    change.standing_to_keep = true;
  else
    change.leases_to_keep = true;
}

void MarkChanged(Lease& lease, Change& change) {
  ++lease.version;
  change.changed.insert(lease.record.id);
}

}  // namespace

const Lease* LeaseTable::Find(std::string_view id) const {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

Lease* LeaseTable::Find(std::string_view id) {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

const Lease* LeaseTable::FindRequest(const Caller& caller, const std::string& request_id) const {
  if (request_id.empty()) return nullptr;
  const auto [begin, end] = requests_.equal_range({caller.subject, request_id});
  for (auto entry = begin; entry != end; ++entry) {
    const Lease* lease = Find(entry->second);
    if (lease != nullptr && lease->record.owner.Is(caller)) return lease;
  }
  return nullptr;
}

std::size_t LeaseTable::CountOf(std::string_view subject) const {
  const auto found = present_of_.find(subject);
  return found == present_of_.end() ? 0 : found->second;
}

const Claim* LeaseTable::FindConflict(const LeaseRecord& asking,
                                      const wire::KnobRequest& asked) const {
  const auto row = knobs_.find(asked.key);
  if (row == knobs_.end()) return nullptr;
  const Claim claim = ClaimOf(asking, {.request = asked});
  if (const Claim* found = daemon::FindConflict(row->second.claims, claim)) return found;
  return daemon::FindConflict(row->second.reserved, claim);
}

Lease& LeaseTable::Add(LeaseRecord record, Change& change) {
  const std::string id = record.id;
  Lease& lease = leases_[id];
  auto requests = std::exchange(record.requests, {});
  lease.record = std::move(record);
  ++present_of_[lease.record.owner.subject];
  if (!lease.record.request_id.empty())
    requests_.insert({{lease.record.owner.subject, lease.record.request_id}, id});
  Place(lease, std::move(requests), change);
  SetState(lease);
  lease.version = 1;
  change.changed.insert(id);
  MarkForKeeping(lease, change);
  return lease;
}

void LeaseTable::AddEnded(LeaseRecord record, EndReason reason, Change& change) {
  const auto requests = std::exchange(record.requests, {});
  Lease& lease = Add(std::move(record), change);
  lease.record.requests = requests;
  RefreshAll(lease);
  BeginEnd(lease, reason, change);
}

// Makes the claims of the lease those of `next`. Demands that stay keep their order.
void LeaseTable::Place(Lease& lease, std::vector<HeldRequest> next, Change& change) {
  auto& present = lease.record.requests;
  for (HeldRequest& held : next) {
    const HeldRequest* old = RequestOn(present, held.request.key);
    if (old != nullptr && old->request == held.request)
      held = *old;
    else
      PutClaim(lease, held, change);
  }
  for (const HeldRequest& old : present)
    if (RequestOn(next, old.request.key) == nullptr) DropClaim(lease, old.request.key, change);
  present = std::move(next);
  RefreshAll(lease);
}

void LeaseTable::PutClaim(const Lease& lease, HeldRequest& held, Change& change) {
  const KnobKey& knob = held.request.key;
  held.version = DropClaim(lease, knob, change);
  if (held.order == 0) held.order = held.version;
  held.settled = false;
  knobs_[knob].claims.push_back(ClaimOf(lease.record, held));
}

// Returns the version of the claims without this lease's; a claim that is put in its place at once
// has the same version.
std::uint64_t LeaseTable::DropClaim(const Lease& lease, const KnobKey& knob, Change& change) {
  KnobRow& row = knobs_[knob];
  EraseClaims(row.claims, lease.record.id);
  row.version = ++counter_;
  change.wake.insert(knob);
  return row.version;
}

// Keeps the knobs that a replacement gives up from others until it has succeeded.
void LeaseTable::Reserve(const Lease& lease) {
  for (const HeldRequest& held : *lease.previous)
    knobs_[held.request.key].reserved.push_back(ClaimOf(lease.record, held));
}

void LeaseTable::Unreserve(Lease& lease) {
  if (!lease.previous) return;
  for (const HeldRequest& held : *lease.previous)
    EraseClaims(knobs_[held.request.key].reserved, lease.record.id);
  lease.previous.reset();
}

void LeaseTable::Replace(Lease& lease, const std::vector<wire::KnobRequest>& requests,
                         Change& change) {
  std::vector<HeldRequest> next;
  for (const wire::KnobRequest& request : requests) next.push_back({.request = request});
  const bool all_settled = std::ranges::all_of(lease.record.requests, &HeldRequest::settled);
  if (!lease.previous && all_settled) {
    lease.previous = lease.record.requests;
    Reserve(lease);
  }
  lease.trouble.reset();
  lease.adopted = false;
  Place(lease, std::move(next), change);
  SetState(lease);
  MarkChanged(lease, change);
  MarkForKeeping(lease, change);
}

void LeaseTable::FallBack(Lease& lease, Change& change) {
  LeaseRecord& record = lease.record;
  record.deadline.reset();
  record.fell_back = true;
  Replace(lease, record.fallback, change);
  // A device that does not take it is asked again, and never given back what was granted before.
  Unreserve(lease);
  lease.adopted = true;
  AuditEntry entry{.event = "lease fell back", .subject = record.owner.subject};
  entry.lease = record.id;
  entry.reason = Name(EndReason::kExpired);
  entry.outcome = "ok";
  for (const wire::KnobRequest& request : record.fallback) {
    entry.knob = request.key;
    entry.to = wire::ToText(request.demand);
    change.audit.push_back(entry);
  }
}

void LeaseTable::ChangeHolder(Lease& lease, Holder holder, Change& change) {
  MarkForKeeping(lease, change);
  if (lease.record.holder.kind == wire::HolderKind::kTtl) {
    lease.record.ttl.reset();
    lease.record.deadline.reset();
  }
  lease.record.holder = std::move(holder);
  MarkForKeeping(lease, change);
  MarkChanged(lease, change);
}

bool LeaseTable::BeginEnd(Lease& lease, EndReason reason, Change& change) {
  if (!lease.live()) return false;
  MarkForKeeping(lease, change);
  lease.end_reason = reason;
  lease.ending_since = change.now;
  Unreserve(lease);
  for (const HeldRequest& held : lease.record.requests) {
    KnobRow& row = knobs_[held.request.key];
    const auto is_mine = [&lease](const Claim& claim) { return claim.lease == lease.record.id; };
    if (std::ranges::none_of(row.claims, is_mine)) continue;  // It ended before this run.
    lease.awaited[held.request.key] = DropClaim(lease, held.request.key, change);
    row.waiting.insert(lease.record.id);
  }
  lease.state = LeaseState::kRestoring;
  MarkChanged(lease, change);
  ++ended_by_[reason];
  AuditEntry entry{.event = "lease ended", .subject = lease.record.owner.subject};
  entry.lease = lease.record.id;
  entry.job = lease.record.holder.job;
  entry.reason = Name(reason);
  entry.outcome = lease.trouble ? lease.trouble->message : "ok";
  change.audit.push_back(std::move(entry));
  if (lease.awaited.empty()) Finish(lease, change);
  return true;
}

void LeaseTable::Settle(const KnobKey& knob, const KnobReport& report, Change& change) {
  const auto found = knobs_.find(knob);
  if (found == knobs_.end()) return;
  KnobRow& row = found->second;
  if (row.report && report.version < row.report->version) return;
  row.report = report;
  std::set<std::string> concerned = row.waiting;
  for (const Claim& claim : row.claims) concerned.insert(claim.lease);
  for (const std::string& id : concerned)
    if (Lease* lease = Find(id)) Advance(*lease, knob, change);
}

void LeaseTable::Advance(Lease& lease, const KnobKey& knob, Change& change) {
  if (!lease.live()) return AdvanceEnd(lease, knob, change);
  HeldRequest* held = RequestOn(lease.record.requests, knob);
  const KnobReport& report = *knobs_[knob].report;
  if (held != nullptr && !held->settled && report.version >= held->version && !report.suspended) {
    if (report.trouble && !lease.adopted) return Fail(lease, *report.trouble, change);
    held->settled = !report.trouble;
  }
  const LeaseState before = lease.state;
  SetState(lease);
  if (Refresh(lease, knob) || lease.state != before) MarkChanged(lease, change);
}

// Takes the knob off the list of those that the lease has to give back.
void LeaseTable::AdvanceEnd(Lease& lease, const KnobKey& knob, Change& change) {
  KnobRow& row = knobs_[knob];
  const KnobReport& report = *row.report;
  const bool refreshed = Refresh(lease, knob);
  const auto awaited = lease.awaited.find(knob);
  const bool heeded = awaited != lease.awaited.end() && report.version >= awaited->second;
  // Without claims the knob has to be at its baseline; with some, they hold instead of this one's.
  const bool done = heeded && (report.released || (!row.claims.empty() && !report.trouble));
  if (done) {
    row.waiting.erase(lease.record.id);
    lease.awaited.erase(awaited);
  }
  if (done && lease.awaited.empty()) return Finish(lease, change);
  if (refreshed) MarkChanged(lease, change);
}

// All or nothing: a replacement is taken back, a new lease ends.
void LeaseTable::Fail(Lease& lease, const Error& trouble, Change& change) {
  lease.trouble = trouble;
  if (!lease.previous) {
    RefreshAll(lease);
    BeginEnd(lease, EndReason::kFailed, change);
    return;
  }
  auto previous = *lease.previous;
  Unreserve(lease);
  Place(lease, std::move(previous), change);
  SetState(lease);
  MarkChanged(lease, change);
  MarkForKeeping(lease, change);
}

void LeaseTable::SetState(Lease& lease) {
  bool suspended = false;
  bool pending = false;
  for (const HeldRequest& held : lease.record.requests) {
    const auto& report = knobs_[held.request.key].report;
    suspended = suspended || (report && report->suspended);
    pending = pending || !held.settled;
  }
  lease.state = suspended ? LeaseState::kSuspended
                : pending ? LeaseState::kApplying
                          : LeaseState::kActive;
  if (!pending) Unreserve(lease);
  if (!pending) lease.adopted = false;
}

void LeaseTable::Finish(Lease& lease, Change& change) {
  lease.state = LeaseState::kEnded;
  MarkChanged(lease, change);
  const auto count = present_of_.find(lease.record.owner.subject);
  if (count != present_of_.end() && --count->second == 0) present_of_.erase(count);
  ended_.emplace_back(change.now, lease.record.id);
  change.restored.push_back(change.now - lease.ending_since);
  lease.record.holder.pidfd.reset();
}

void LeaseTable::ForgetEnded(Seconds before) {
  while (!ended_.empty() && (ended_.size() > most_ended_ || ended_.front().first <= before)) {
    const auto lease = leases_.find(ended_.front().second);
    const LeaseRecord& record = lease->second.record;
    const auto [begin, end] = requests_.equal_range({record.owner.subject, record.request_id});
    const auto entry = std::find_if(
        begin, end, [&record](const auto& request) { return request.second == record.id; });
    if (entry != end) requests_.erase(entry);
    leases_.erase(lease);
    ended_.pop_front();
  }
}

Claims LeaseTable::ClaimsOn(const KnobKey& knob) const {
  const auto row = knobs_.find(knob);
  if (row == knobs_.end()) return {};
  return {.version = row->second.version, .claims = row->second.claims};
}

std::vector<KnobKey> LeaseTable::ClaimedKnobs() const {
  std::vector<KnobKey> claimed;
  for (const auto& [knob, row] : knobs_)
    if (!row.claims.empty()) claimed.push_back(knob);
  return claimed;
}

std::vector<KnobKey> LeaseTable::TurnedKnobs() const {
  std::vector<KnobKey> turned;
  for (const auto& [knob, row] : knobs_)
    if (!row.claims.empty() || !row.waiting.empty()) turned.push_back(knob);
  return turned;
}

LeaseBook::Counts LeaseTable::Count() const {
  LeaseBook::Counts counts{.ended = ended_by_};
  for (const auto& [id, lease] : leases_) ++counts.present[{lease.record.lease_class, lease.state}];
  for (const auto& [knob, row] : knobs_) {
    const bool stuck = row.report && (row.report->trouble || row.report->suspended);
    if (!row.waiting.empty() && stuck) ++counts.restore_pending;
  }
  return counts;
}

wire::LeaseView LeaseTable::View(const Lease& lease, Seconds now) const {
  const LeaseRecord& record = lease.record;
  wire::LeaseView view{.id = record.id, .name = record.name, .subject = record.owner.subject};
  view.state = lease.state;
  view.version = lease.version;
  view.lease_class = record.lease_class;
  view.holder = record.holder.kind;
  view.pid = record.holder.process ? record.holder.process->pid : 0;
  view.job = record.holder.job;
  if (record.deadline && lease.live())
    view.expires_in = std::max(Seconds(0), *record.deadline - now);
  view.since = record.since;
  view.fell_back = record.fell_back;
  view.knobs = lease.shown;
  if (lease.end_reason) view.end_reason = Name(*lease.end_reason);
  return view;
}

KnobView LeaseTable::ViewOf(const Lease& lease, const wire::KnobRequest& request) const {
  KnobView view{.request = request};
  const auto row = knobs_.find(request.key);
  if (row == knobs_.end() || !row->second.report) return view;
  const KnobReport& report = *row->second.report;
  const Resolution& resolution = report.resolution;
  view.effective = resolution.effective ? resolution.effective : report.baseline;
  view.enforced = report.enforced;
  view.overruled = resolution.overruled.contains(lease.record.id);
  view.foreign = report.foreign;
  if (resolution.bound_by.empty() || resolution.bound_by == lease.record.id) return view;
  view.bound_by = resolution.bound_by;
  if (const Lease* binding = Find(resolution.bound_by)) {
    view.bound_by_class = Name(binding->record.lease_class);
    view.bound_by_name = binding->record.name;
  }
  return view;
}

bool LeaseTable::Refresh(Lease& lease, const KnobKey& knob) const {
  for (KnobView& shown : lease.shown) {
    if (shown.request.key != knob) continue;
    KnobView view = ViewOf(lease, shown.request);
    if (view == shown) return false;
    shown = std::move(view);
    return true;
  }
  return false;
}

void LeaseTable::RefreshAll(Lease& lease) const {
  lease.shown.clear();
  for (const HeldRequest& held : lease.record.requests)
    lease.shown.push_back(ViewOf(lease, held.request));
}

}  // namespace zeus::daemon
