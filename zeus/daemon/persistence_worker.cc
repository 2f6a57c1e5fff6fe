#include "zeus/daemon/persistence_worker.h"

#include <utility>

#include "zeus/base/log.h"
#include "zeus/daemon/watched_actuator.h"

namespace zeus::daemon {
namespace {

constexpr Watts kOn{1};  // The one setting of this knob.
constexpr const char* kLeftover = "left by a process that is gone";

const char* Word(Persistence mode) { return mode == Persistence::kOn ? "on" : "off"; }

}  // namespace

PersistenceWorker::PersistenceWorker(wire::KnobKey key, std::unique_ptr<KnobActuator> actuator,
                                     DeskPlaces places)
    : key_(std::move(key)), actuator_(std::move(actuator)), places_(places) {}

Status PersistenceWorker::AdoptLeftover() {
  if (repaired_ || !places_.journal.Knows(actuator_->kind(), actuator_->device())) return Ok();
  ZEUS_TRY(const Persistence mode, ReadMode());
  ReadAhead ahead(*actuator_, {.persistence = mode});
  ZEUS_TRY(const auto entry, places_.journal.Adopt(ahead));
  if (!entry) return Ok();
  repaired_ = true;
  taken_.emplace(Taken{.before = entry->before,
                       .mark = entry->epoch_mark,
                       .reloads = actuator_->ReloadsSeen(),
                       .on = mode == Persistence::kOn});
  Audit({.event = "knob taken over", .effective = Word(mode), .reason = kLeftover}, Ok());
  return Ok();
}

Status PersistenceWorker::RepairLeftover() {
  if (repaired_ || !places_.journal.Knows(actuator_->kind(), actuator_->device())) {
    repaired_ = true;
    return Ok();
  }
  // A driver that hangs does so here, and not while the journal is locked.
  ZEUS_TRY(const Persistence mode, ReadMode());
  const auto tell = [&](const KnobEntry&) {
    if (std::exchange(found_told_, true)) return;
    Audit({.event = "knob found in the journal", .effective = Word(mode), .reason = kLeftover},
          Ok());
    WaitForAudit();
  };
  const auto repair =
      places_.journal.PutBackLeftover(*actuator_, KnobJournal::Holders::kRespect, tell);
  if (!repair.ok()) return repair.error();
  repaired_ = true;
  found_told_ = false;
  if (repair.value() != KnobJournal::Repair::kRestored) return Ok();
  const auto now = ReadMode();
  Audit({.event = "knob put back",
         .from = Word(mode),
         .effective = now.ok() ? Word(now.value()) : "",
         .reason = kLeftover},
        Ok());
  return Ok();
}

KnobReport PersistenceWorker::Serve(const Claims& claims, bool needed, const KnobRules& rules) {
  lost_ = false;
  KnobReport report{.version = claims.version};
  const bool claimed = !claims.claims.empty() && !rules.maintenance;
  const bool hold = claimed || (needed && !rules.maintenance);
  Status done = RemoveEntry();
  if (done.ok() && hold) done = AdoptLeftover();
  if (done.ok()) done = RepairLeftover();
  if (done.ok()) done = hold ? Hold(claims, rules, report) : PutBack();
  if (!done.ok() && (claimed || !hold)) report.trouble = done.error();
  // See KnobWorker::Serve().
  const bool others = !hold && !done.ok() && !taken_ &&
                      places_.journal.IsHeldByOther(actuator_->kind(), actuator_->device());
  restore_pending_ = !hold && !done.ok() && !others;
  report.suspended = lost_ || rules.maintenance;
  report.released = claims.claims.empty() && (done.ok() || others);
  return report;
}

Result<Persistence> PersistenceWorker::ReadMode() {
  auto state = actuator_->Read();
  lost_ = !state.ok() && state.error().code == ErrorCode::kUnavailable;
  if (!state.ok()) return std::move(state).error();
  mode_ = state.value().persistence.value_or(Persistence::kOff);
  return *mode_;
}

Status PersistenceWorker::Hold(const Claims& claims, const KnobRules& rules, KnobReport& report) {
  ZEUS_TRY(const Persistence mode, ReadMode());
  if (taken_ && mode == Persistence::kOff && Reloaded()) ZEUS_RETURN_IF_ERROR(Forget());
  const bool switched_off = mode == Persistence::kOff && (found_on_ || (taken_ && taken_->on));
  if (switched_off && !foreign_) {
    ++foreign_changes_;
    log::Warning("another program switched the persistence mode of {} off",
                 actuator_->device().name);
    Audit({.event = "knob changed by others", .from = "on", .effective = "off"}, Ok());
  }
  foreign_ = switched_off;
  if (mode == Persistence::kOn && !taken_) found_on_ = true;
  const TimePoint now = places_.clock.Now();
  const bool may_reassert =
      rules.foreign == ForeignPolicy::kReassert && reasserts_ < KnobWorker::kMostReasserts &&
      (!last_reassert_ || now - *last_reassert_ >= KnobWorker::kBetweenReasserts);
  if (foreign_ && may_reassert) {
    ++reasserts_;
    last_reassert_ = now;
    foreign_ = false;
  }
  Status done = Ok();
  if (mode == Persistence::kOff && !foreign_) done = SwitchOn(claims);
  report.foreign = foreign_;
  const KnobState baseline = taken_ ? taken_->before : KnobState{.persistence = mode};
  report.baseline = wire::KnobValue(baseline.persistence.value_or(Persistence::kOff));
  report.resolution = Resolve(report.baseline, std::nullopt, claims.claims);
  const auto enforced = ReadMode();
  if (enforced.ok()) report.enforced = wire::KnobValue(enforced.value());
  return done;
}

Status PersistenceWorker::SwitchOn(const Claims& claims) {
  if (!taken_ && !found_on_) {
    ReadAhead ahead(*actuator_, {.persistence = Persistence::kOff});
    ZEUS_TRY(const KnobState before, places_.journal.Take(ahead, kOn));
    taken_.emplace(
        Taken{.before = before, .mark = ahead.EpochMark(), .reloads = actuator_->ReloadsSeen()});
  }
  Status done = actuator_->Apply(kOn);
  if (taken_) taken_->on = done.ok();
  if (!claims.claims.empty() || done.ok()) {
    AuditEntry entry{.event = "knob set", .from = "off", .to = "on", .effective = "on"};
    if (!claims.claims.empty()) {
      entry.subject = claims.claims.front().subject;
      entry.lease = claims.claims.front().lease;
    }
    Audit(std::move(entry), done);
  }
  const bool refused = !done.ok() && (done.error().code == ErrorCode::kPermissionDenied ||
                                      done.error().code == ErrorCode::kNotSupported);
  if (refused && taken_) ZEUS_RETURN_IF_ERROR(Forget());
  return done;
}

Status PersistenceWorker::PutBack() {
  foreign_ = false;
  found_on_ = false;
  reasserts_ = 0;
  last_reassert_.reset();
  if (!taken_) {
    if (!mode_)
      if (const auto state = actuator_->Read(); state.ok()) mode_ = state.value().persistence;
    return Ok();
  }
  const KnobState before = taken_->before;
  Status done = actuator_->PutBack(before);
  if (!done.ok()) {
    lost_ = done.error().code == ErrorCode::kUnavailable;
    if (!restore_pending_)
      Audit({.event = "knob put back", .from = "on", .to = "off", .effective = "on"}, done);
    return done;
  }
  mode_ = before.persistence;
  Audit({.event = "knob put back", .from = "on", .to = "off", .effective = "off"}, Ok());
  WaitForAudit();
  return Forget();
}

// An entry that could not be removed is removed before anything else is done with the knob: it is
// this process's, also while its folder cannot be read.
Status PersistenceWorker::RemoveEntry() {
  if (!entry_left_) return Ok();
  ZEUS_RETURN_IF_ERROR(places_.journal.Release(*actuator_));
  entry_left_ = false;
  return Ok();
}

Status PersistenceWorker::Forget() {
  taken_.reset();
  Status released = places_.journal.Release(*actuator_);
  entry_left_ = !released.ok();
  repaired_ = released.ok();
  return released;
}

bool PersistenceWorker::Reloaded() {
  const auto mark = actuator_->EpochMark();
  return actuator_->ReloadsSeen() > taken_->reloads ||
         (mark && taken_->mark && *mark < *taken_->mark);
}

// See KnobWorker::WaitForAudit().
void PersistenceWorker::WaitForAudit() const {
  if (places_.audit != nullptr) places_.audit->WaitUntilWritten(KnobWorker::kLongestAuditWait);
}

void PersistenceWorker::Audit(AuditEntry entry, const Status& outcome) const {
  if (places_.audit == nullptr) return;
  entry.knob = key_;
  entry.outcome = outcome.ok() ? "ok" : outcome.error().message;
  places_.audit->Append(std::move(entry));
}

}  // namespace zeus::daemon
