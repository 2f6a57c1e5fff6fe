#include "zeus/daemon/lease_book.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/daemon/lease_book_state.h"
#include "zeus/daemon/leases_file.h"

namespace zeus::daemon {
namespace {

using wire::KnobKey;
using wire::KnobRequest;
using wire::LeaseRefusal;
using wire::LeaseView;

// Heartbeats and ends of holders are written so often: they may be lost in a crash.
constexpr Seconds kWritePeriod(1);
constexpr Seconds kLongestStep(1);

std::optional<uid_t> OwnerOf(const ProcessIdentity& process) {
  struct stat status {};
  const std::string folder = fmt::format("/proc/{}", process.pid);
  if (!IsRunning(process) || ::stat(folder.c_str(), &status) != 0) return std::nullopt;
  return status.st_uid;
}

LeaseBook::Options WithDefaults(LeaseBook::Options options) {
  if (!options.is_running)
    options.is_running = [](const ProcessIdentity& process) { return IsRunning(process); };
  if (!options.owner_of) options.owner_of = OwnerOf;
  return options;
}

}  // namespace

std::string_view Name(EndReason reason) {
  constexpr std::array<std::string_view, 7> kNames = {
      "deleted", "holder gone", "expired", "revoked", "job ended", "stopped", "failed"};
  return kNames.at(static_cast<std::size_t>(reason));
}

LeaseBook::State::State(Clock& clock, KnobDesk& desk, AuditLog* audit, Options options)
    : clock_(clock),
      desk_(desk),
      audit_(audit),
      options_(WithDefaults(std::move(options))),
      table_(options_.most_leases) {}

void LeaseBook::State::Tell(const Change& change) {
  for (const KnobKey& knob : change.wake) desk_.Wake(knob);
  if (options_.changed)
    for (const std::string& lease : change.changed) options_.changed(lease);
  if (options_.restored)
    for (const Seconds duration : change.restored) options_.restored(duration);
  if (audit_ != nullptr)
    for (const AuditEntry& entry : change.audit) audit_->Append(entry);
}

void LeaseBook::State::NoteRefusal(const Caller& caller, const LeaseRefusal& refusal,
                                   std::string_view lease) {
  if (audit_ == nullptr) return;
  AuditEntry entry = EntryFor(caller, "refused");
  entry.lease = lease;
  entry.knob = refusal.key;
  entry.outcome = refusal.message;
  audit_->AppendRefusal(std::move(entry));
}

// False when the file could not be written.
bool LeaseBook::State::WriteFile(const std::filesystem::path& file,
                                 const std::vector<LeaseRecord>& records, Durability durability) {
  if (file.empty()) return true;
  const Status written = WriteLeases(file, options_.boot_clock().boot, records, durability);
  if (!written.ok() && !write_failed_)
    log::Warning("leases would not outlast the daemon: {}", written.error().message);
  write_failed_ = !written.ok();
  return written.ok();
}

void LeaseBook::State::WriteFiles() {
  const std::lock_guard files_lock(files_mutex_);
  std::vector<LeaseRecord> leases;
  std::vector<LeaseRecord> standing;
  bool write_leases = false;
  bool write_standing = false;
  {
    const std::lock_guard lock(mutex_);
    write_leases = std::exchange(leases_written_, leases_generation_) != leases_generation_;
    write_standing = std::exchange(standing_written_, standing_generation_) != standing_generation_;
    if (!write_leases && !write_standing) return;
    for (const auto& [id, lease] : table_.leases()) {
      if (!lease.live()) continue;
      const bool stands = lease.record.holder.kind == wire::HolderKind::kStanding;
      if (stands && write_standing) standing.push_back(lease.record);
      if (!stands && write_leases) leases.push_back(lease.record);
    }
  }
  // A file that could not be written is tried again at the next step.
  // Leases end with the boot as the settings of devices do, so that only standing ones are worth a
  // wait for the disk.
  if (write_leases && !WriteFile(options_.state_file, leases, Durability::kSurvivesProcess))
    leases_written_ = kNotWritten;
  if (write_standing &&
      !WriteFile(options_.standing_file, standing, Durability::kSurvivesPowerLoss))
    standing_written_ = kNotWritten;
  last_write_ = clock_.Now();
}

void LeaseBook::State::Expire(Lease& lease, Change& change) {
  if (lease.record.fallback.empty())
    table_.BeginEnd(lease, EndReason::kExpired, change);
  else
    table_.FallBack(lease, change);
}

// Returns the time until the next deadline.
Seconds LeaseBook::State::StepLeases(Change& change) {
  table_.ForgetEnded(change.now - options_.ended_kept);
  quota_.Forget(clock_.Now());
  Seconds next = kLongestStep;
  std::vector<std::string> expired;
  for (const auto& [id, lease] : table_.leases()) {
    if (!lease.live() || !lease.record.deadline) continue;
    const Seconds left = *lease.record.deadline - change.now;
    if (left <= Seconds(0))
      expired.push_back(id);
    else
      next = std::min(next, left);
  }
  for (const std::string& id : expired) Expire(*table_.Find(id), change);
  return next;
}

void LeaseBook::State::Adopt(LeaseRecord record, Change& change) {
  if (table_.Find(record.id) != nullptr) return;
  // Heartbeats could not arrive while the daemon was away. A budget is none the longer valid.
  if (record.ttl && record.fallback.empty()) record.deadline = change.now + *record.ttl;
  const wire::HolderKind kind = record.holder.kind;
  const bool gone = kind == wire::HolderKind::kConnection ||
                    (kind == wire::HolderKind::kProcess &&
                     (!record.holder.process || !options_.is_running(*record.holder.process)));
  if (gone) return table_.AddEnded(std::move(record), EndReason::kHolderGone, change);
  if (kind == wire::HolderKind::kJob && options_.job_runs && !options_.job_runs(record.holder.job))
    return table_.AddEnded(std::move(record), EndReason::kJobEnded, change);
  Lease& lease = table_.Add(std::move(record), change);
  lease.adopted = true;
  // The watts of a budget that ended meanwhile may be another node's by now: they are not applied
  // for a moment.
  if (lease.record.deadline && *lease.record.deadline <= change.now) Expire(lease, change);
}

LeaseBook::LeaseBook(Clock& clock, KnobDesk& desk, AuditLog* audit, Options options)
    : state_(std::make_unique<State>(clock, desk, audit, std::move(options))) {}

LeaseBook::~LeaseBook() { state_->WriteFiles(); }

OrRefusal<LeaseView> LeaseBook::Create(const Caller& caller, const Grant& grant,
                                       const wire::LeaseSpec& spec) {
  auto outcome = state_->Create(caller, grant, spec);
  if (const auto* refusal = std::get_if<LeaseRefusal>(&outcome))
    state_->NoteRefusal(caller, *refusal, "");
  state_->WriteFiles();
  return outcome;
}

OrRefusal<LeaseView> LeaseBook::Replace(const Caller& caller, const Grant& grant,
                                        std::string_view lease,
                                        const std::vector<KnobRequest>& requests,
                                        const std::optional<Renewal>& renewal) {
  auto outcome = state_->Replace(caller, grant, lease, requests, renewal);
  if (const auto* refusal = std::get_if<LeaseRefusal>(&outcome))
    state_->NoteRefusal(caller, *refusal, lease);
  state_->WriteFiles();
  return outcome;
}

OrRefusal<std::monostate> LeaseBook::Heartbeat(const Caller& caller, const Grant& grant,
                                               std::string_view lease) {
  return state_->Do([&](Change& change) -> OrRefusal<std::monostate> {
    Lease* found = state_->FindOwn(caller, grant, lease);
    if (found == nullptr) return UnknownLease(lease);
    LeaseRecord& record = found->record;
    // A heartbeat at the deadline is too late, whether or not Step() has been here.
    if (found->live() && record.deadline && change.now >= *record.deadline)
      state_->Expire(*found, change);
    if (!found->live()) return EndedLease(*found);
    if (!record.ttl || record.fell_back) return std::monostate();
    record.deadline = change.now + *record.ttl;
    (record.holder.kind == wire::HolderKind::kStanding ? change.standing_to_keep
                                                       : change.leases_to_keep) = true;
    return std::monostate();
  });
}

OrRefusal<LeaseView> LeaseBook::HandOver(const Caller& caller, const Grant& grant,
                                         std::string_view lease, const Holder& holder) {
  auto outcome = state_->HandOver(caller, grant, lease, holder);
  if (const auto* refusal = std::get_if<LeaseRefusal>(&outcome))
    state_->NoteRefusal(caller, *refusal, lease);
  state_->WriteFiles();
  return outcome;
}

OrRefusal<LeaseView> LeaseBook::End(const Caller& caller, const Grant& grant,
                                    std::string_view lease, EndReason reason) {
  auto outcome = state_->End(caller, grant, lease, reason);
  if (const auto* refusal = std::get_if<LeaseRefusal>(&outcome))
    state_->NoteRefusal(caller, *refusal, lease);
  state_->WriteFiles();
  return outcome;
}

OrRefusal<LeaseView> LeaseBook::View(const Caller& caller, const Grant& grant,
                                     std::string_view lease) const {
  const Seconds now = state_->Now();
  const std::lock_guard lock(state_->mutex_);
  const Lease* found = state_->FindOwn(caller, grant, lease);
  if (found == nullptr) return UnknownLease(lease);
  return state_->table_.View(*found, now);
}

std::optional<Error> LeaseBook::TroubleOf(std::string_view lease) const {
  const std::lock_guard lock(state_->mutex_);
  const Lease* found = state_->table_.Find(lease);
  return found == nullptr ? std::nullopt : found->trouble;
}

std::vector<LeaseView> LeaseBook::List(const Caller& caller, const Grant& grant) const {
  const Seconds now = state_->Now();
  const std::lock_guard lock(state_->mutex_);
  std::vector<LeaseView> views;
  for (const auto& [id, lease] : state_->table_.leases())
    if (grant.admin() || lease.record.owner.Is(caller))
      views.push_back(state_->table_.View(lease, now));
  return views;
}

std::size_t LeaseBook::CountOf(std::string_view subject) const {
  const std::lock_guard lock(state_->mutex_);
  return state_->table_.CountOf(subject);
}

std::size_t LeaseBook::EndAll(const Which& which, EndReason reason) {
  if (reason == EndReason::kStopped)
    state_->Do([&](Change& change) {
      std::vector<std::string> budgets;
      for (const auto& [id, lease] : state_->table_.leases())
        if (lease.live() && !lease.record.fallback.empty() && !lease.record.fell_back)
          budgets.push_back(id);
      for (const std::string& id : budgets)
        state_->table_.FallBack(*state_->table_.Find(id), change);
      return true;
    });
  const std::size_t ended = state_->EndWhere(reason, [&](const Lease& lease) {
    const LeaseRecord& record = lease.record;
    if (reason == EndReason::kStopped &&
        (record.holder.kind == wire::HolderKind::kStanding || !record.fallback.empty()))
      return false;
    if (!which.subject.empty() && record.owner.subject != which.subject) return false;
    return which.device.empty() || std::ranges::any_of(record.requests, [&](const auto& held) {
             return held.request.key.device == which.device;
           });
  });
  state_->WriteFiles();
  return ended;
}

std::size_t LeaseBook::Revoke(const std::function<bool(const Caller&, const LeaseView&)>& allowed) {
  std::vector<std::pair<Caller, LeaseView>> all;
  {
    const Seconds now = state_->Now();
    const std::lock_guard lock(state_->mutex_);
    for (const auto& [id, lease] : state_->table_.leases()) {
      if (!lease.live()) continue;
      Caller owner = lease.record.owner.ToCaller();
      owner.process = lease.record.holder.process;
      all.emplace_back(std::move(owner), state_->table_.View(lease, now));
    }
  }
  std::set<std::string> forbidden;
  for (const auto& [owner, view] : all)
    if (!allowed(owner, view)) forbidden.insert(view.id);
  const std::size_t ended = state_->EndWhere(
      EndReason::kRevoked, [&](const Lease& lease) { return forbidden.contains(lease.record.id); });
  state_->WriteFiles();
  return ended;
}

void LeaseBook::ConnectionClosed(std::uint64_t connection) {
  state_->EndWhere(EndReason::kHolderGone, [connection](const Lease& lease) {
    const Holder& holder = lease.record.holder;
    return holder.kind == wire::HolderKind::kConnection && holder.connection == connection;
  });
}

void LeaseBook::ProcessEnded(std::string_view lease) {
  state_->Do([&](Change& change) {
    Lease* found = state_->table_.Find(lease);
    return found != nullptr && found->record.holder.kind == wire::HolderKind::kProcess &&
           state_->table_.BeginEnd(*found, EndReason::kHolderGone, change);
  });
}

void LeaseBook::JobEnded(std::string_view job) {
  state_->EndWhere(EndReason::kJobEnded, [job](const Lease& lease) {
    const Holder& holder = lease.record.holder;
    return holder.kind == wire::HolderKind::kJob && holder.job == job;
  });
}

TimePoint LeaseBook::Step() {
  const TimePoint now = state_->clock_.Now();
  const Seconds next = state_->Do([this](Change& change) { return state_->StepLeases(change); });
  bool due = false;
  {
    const std::lock_guard lock(state_->files_mutex_);
    due = now - state_->last_write_ >= kWritePeriod;
  }
  if (due) state_->WriteFiles();
  return now + next;
}

Result<std::vector<LeaseBook::Adopted>> LeaseBook::Load() {
  const Options& options = state_->options_;
  const auto read = [](const std::filesystem::path& file) {
    return file.empty() ? Result<KeptLeases>(KeptLeases{}) : ReadLeases(file);
  };
  auto standing = read(options.standing_file);
  auto kept = read(options.state_file);
  const std::string boot = options.boot_clock().boot;
  std::vector<LeaseRecord> records;
  if (standing.ok()) records = standing.value().leases;
  if (kept.ok() && kept.value().boot == boot)
    std::ranges::move(kept.value().leases, std::back_inserter(records));
  auto adopted = state_->Do([&](Change& change) {
    std::vector<Adopted> watched;
    for (LeaseRecord& record : records) state_->Adopt(std::move(record), change);
    for (const auto& [id, lease] : state_->table_.leases())
      if (lease.live() && lease.record.holder.kind == wire::HolderKind::kProcess)
        watched.push_back({.lease = id, .process = *lease.record.holder.process});
    return watched;
  });
  if (!standing.ok()) return standing.error();
  if (!kept.ok()) return kept.error();
  state_->WriteFiles();
  return adopted;
}

Claims LeaseBook::ClaimsOn(const KnobKey& knob) const {
  const std::lock_guard lock(state_->mutex_);
  return state_->table_.ClaimsOn(knob);
}

void LeaseBook::Settled(const KnobKey& knob, const KnobReport& report) {
  state_->Do([&](Change& change) {
    state_->table_.Settle(knob, report, change);
    return true;
  });
}

std::vector<KnobKey> LeaseBook::ClaimedKnobs() const {
  const std::lock_guard lock(state_->mutex_);
  return state_->table_.ClaimedKnobs();
}

std::vector<KnobKey> LeaseBook::TurnedKnobs() const {
  const std::lock_guard lock(state_->mutex_);
  return state_->table_.TurnedKnobs();
}

LeaseBook::Counts LeaseBook::CountLeases() const {
  const std::lock_guard lock(state_->mutex_);
  return state_->table_.Count();
}

}  // namespace zeus::daemon
