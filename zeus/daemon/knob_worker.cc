#include "zeus/daemon/knob_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "zeus/base/log.h"
#include "zeus/daemon/watched_actuator.h"

namespace zeus::daemon {

std::string ToText(const wire::KnobValue& value) {
  if (const auto* setting = std::get_if<Setting>(&value)) return zeus::ToText(*setting);
  if (const auto* range = std::get_if<ClockRange>(&value))
    return fmt::format("{} to {}", zeus::ToText(Setting(range->min)),
                       zeus::ToText(Setting(range->max)));
  return std::get<Persistence>(value) == Persistence::kOn ? "on" : "off";
}

KnobChoices Bounded(KnobChoices choices, const KnobBounds& bounds) {
  const bool clock = std::holds_alternative<Hertz>(choices.highest);
  if (bounds.max_share) {
    const double highest = ToNumber(choices.highest) * *bounds.max_share;
    choices = UpTo(clock ? Setting(Hertz::FromMega(highest)) : Setting(Watts(highest)),
                   std::move(choices));
  }
  std::optional<Setting> lowest;
  if (clock && bounds.min_hertz) lowest = *bounds.min_hertz;
  if (!clock && bounds.min_watts) lowest = *bounds.min_watts;
  if (!lowest || *lowest <= choices.lowest) return choices;
  if (choices.steps.empty()) {
    choices.lowest = std::min(*lowest, choices.highest);
    return choices;
  }
  const auto first = std::ranges::lower_bound(choices.steps, *lowest);
  choices.steps.erase(choices.steps.begin(), std::min(first, std::prev(choices.steps.end())));
  choices.lowest = choices.steps.front();
  return choices;
}

namespace {

bool SameValue(const std::optional<wire::KnobValue>& a, const std::optional<wire::KnobValue>& b) {
  if (!a || !b || a->index() != b->index()) return a.has_value() == b.has_value() && !a;
  if (const auto* setting = std::get_if<Setting>(&*a))
    return SameSetting(*setting, std::get<Setting>(*b));
  if (const auto* range = std::get_if<ClockRange>(&*a)) {
    const auto& other = std::get<ClockRange>(*b);
    return range->min == other.min && range->max == other.max;
  }
  return std::get<Persistence>(*a) == std::get<Persistence>(*b);
}

bool Contains(const std::vector<Setting>& settings, const Setting& setting) {
  return std::ranges::any_of(settings,
                             [&](const Setting& one) { return SameSetting(one, setting); });
}

bool IsRefusal(const Error& error) {
  return error.code == ErrorCode::kPermissionDenied || error.code == ErrorCode::kNotSupported;
}

std::optional<wire::KnobValue> ToValue(const KnobState& state) {
  if (!state.setting) return std::nullopt;
  return wire::KnobValue(*state.setting);
}

// The setting with which the journal knows a value. Nobody compares those of clocks with a device.
Setting NotedAs(const std::optional<wire::KnobValue>& value, const Setting& baseline) {
  if (!value) return baseline;
  if (const auto* range = std::get_if<ClockRange>(&*value)) return range->max;
  return std::get<Setting>(*value);
}

// Whether a foreign setting takes more than the cap of a site: the watts above it are others'.
bool IsAboveSiteCap(const Setting& foreign, const Resolution& resolution, const Claims& claims) {
  const bool capped = std::ranges::any_of(claims.claims, [](const Claim& claim) {
    return claim.lease_class == wire::LeaseClass::kSite &&
           std::holds_alternative<wire::AtMost>(claim.demand);
  });
  if (!capped || !resolution.effective) return false;
  const auto* effective = std::get_if<Setting>(&*resolution.effective);
  return effective != nullptr && effective->index() == foreign.index() && foreign > *effective;
}

std::string DemandText(const wire::Demand& demand) {
  if (const auto* exactly = std::get_if<wire::Exactly>(&demand))
    return zeus::ToText(exactly->value);
  if (const auto* at_most = std::get_if<wire::AtMost>(&demand))
    return "at most " + zeus::ToText(at_most->value);
  if (const auto* range = std::get_if<wire::InRange>(&demand))
    return ToText(wire::KnobValue(ClockRange{range->lowest, range->highest}));
  return "on";
}

}  // namespace

KnobWorker::KnobWorker(wire::KnobKey key, std::unique_ptr<KnobActuator> actuator,
                       KnobChoices choices, DeskPlaces places)
    : key_(std::move(key)),
      actuator_(std::move(actuator)),
      choices_(std::move(choices)),
      places_(places),
      name_(KnobName(actuator_->kind(), actuator_->device().name)) {}

Status KnobWorker::AdoptLeftover() {
  if (repaired_ || !places_.journal.Knows(actuator_->kind(), actuator_->device())) return Ok();
  ZEUS_TRY(const KnobState present, ReadPresent());
  began_ = places_.clock.Now();
  ReadAhead ahead(*actuator_, present);
  ZEUS_TRY(const auto entry, places_.journal.Adopt(ahead));
  if (!entry) return Ok();
  repaired_ = true;
  // Nothing tells the place of a lock of clocks: it is set again.
  taken_.emplace(Taken{.before = entry->before,
                       .ours = entry->ours,
                       .noted = entry->ours,
                       .value = ToValue(present),
                       .written = true,
                       .uncertain = !present.setting,
                       .mark = entry->epoch_mark,
                       .reloads = actuator_->ReloadsSeen()});
  if (entry->before.setting) taken_->ours.push_back(*entry->before.setting);
  Audit({.event = "knob taken over",
         .effective = TextOf(taken_->value),
         .reason = "left by a process that is gone"},
        Ok());
  return Ok();
}

Status KnobWorker::RepairLeftover() {
  if (repaired_ || !places_.journal.Knows(actuator_->kind(), actuator_->device())) {
    repaired_ = true;
    return Ok();
  }
  // A driver that hangs does so here, and not while the journal is locked.
  ZEUS_TRY(const KnobState present, ReadPresent());
  began_ = places_.clock.Now();
  const auto tell = [&](const KnobEntry&) {
    if (std::exchange(found_told_, true)) return;
    Audit({.event = "knob found in the journal",
           .effective = TextOf(ToValue(present)),
           .reason = "left by a process that is gone"},
          Ok());
    WaitForAudit();
  };
  const auto repair =
      places_.journal.PutBackLeftover(*actuator_, KnobJournal::Holders::kRespect, tell);
  if (!repair.ok()) return repair.error();
  repaired_ = true;
  found_told_ = false;
  if (repair.value() == KnobJournal::Repair::kRestored) {
    const auto now = ReadPresent();
    Audit({.event = "knob put back",
           .from = TextOf(ToValue(present)),
           .effective = now.ok() ? TextOf(ToValue(now.value())) : "",
           .reason = "left by a process that is gone"},
          Ok());
  }
  return Ok();
}

KnobReport KnobWorker::Serve(const Claims& claims, const KnobRules& rules) {
  began_ = places_.clock.Now();
  lost_ = false;
  KnobReport report{.version = claims.version};
  const bool hold = !claims.claims.empty() && !rules.maintenance;
  Status done = RemoveEntry();
  if (done.ok() && hold) done = AdoptLeftover();
  if (done.ok()) done = RepairLeftover();
  if (done.ok()) done = hold ? Hold(claims, rules, report) : PutBack();
  if (!done.ok()) report.trouble = done.error();
  // A knob that another program holds is not this daemon's to put back.
  const bool others = !hold && !done.ok() && !taken_ &&
                      places_.journal.IsHeldByOther(actuator_->kind(), actuator_->device());
  restore_pending_ = !hold && !done.ok() && !others;
  was_lost_ = was_lost_ || lost_;
  report.suspended = lost_ || rules.maintenance;
  report.released = claims.claims.empty() && !taken_ && (done.ok() || others);
  return report;
}

Result<KnobState> KnobWorker::ReadPresent() {
  auto present = actuator_->Read();
  lost_ = !present.ok() && present.error().code == ErrorCode::kUnavailable;
  if (!present.ok()) return std::move(present).error().While(name_);
  return present;
}

Status KnobWorker::Hold(const Claims& claims, const KnobRules& rules, KnobReport& report) {
  leases_.clear();
  for (const Claim& claim : claims.claims) leases_ += (leases_.empty() ? "" : ", ") + claim.lease;
  subject_ = claims.claims.front().subject;
  ZEUS_TRY(const KnobState present, ReadPresent());
  if (taken_) ZEUS_RETURN_IF_ERROR(NoticeReload(present));
  if (taken_) {
    NoticeForeign(present);
  } else {
    ZEUS_RETURN_IF_ERROR(Take(present, claims, rules));
  }
  report.baseline = ToValue(taken_->before);
  report.resolution =
      Resolve(report.baseline, Allowed(taken_->before.setting, rules), claims.claims);
  report.foreign = taken_->foreign &&
                   !MayReassert(rules, IsAboveSiteCap(*taken_->foreign, report.resolution, claims));
  if (!report.foreign) ZEUS_RETURN_IF_ERROR(TurnTo(report.resolution, claims));
  report.enforced = Enforced();
  return CheckCeiling(claims, report.resolution, rules);
}

KnobChoices KnobWorker::Allowed(const std::optional<Setting>& ceiling,
                                const KnobRules& rules) const {
  KnobChoices choices = Bounded(choices_, rules.bounds);
  return ceiling && !rules.may_raise ? UpTo(*ceiling, std::move(choices)) : choices;
}

// --- taking and putting back ---

Status KnobWorker::Take(const KnobState& present, const Claims& claims, const KnobRules& rules) {
  const Resolution expected =
      Resolve(ToValue(present), Allowed(present.setting, rules), claims.claims);
  const Setting first = NotedAs(expected.effective, present.setting.value_or(choices_.highest));
  ReadAhead ahead(*actuator_, present);
  ZEUS_TRY(const KnobState before, places_.journal.Take(ahead, first));
  taken_.emplace(Taken{.before = before,
                       .ours = {},
                       .noted = {first},
                       .mark = ahead.EpochMark(),
                       .reloads = actuator_->ReloadsSeen()});
  was_lost_ = false;
  if (taken_->before.setting) taken_->ours = {*taken_->before.setting};
  // Another program may have turned the knob before it was ours alone.
  ZEUS_TRY(const KnobState again, ReadPresent());
  if (again.setting && !SameSetting(*again.setting, *taken_->before.setting)) {
    taken_->before.setting = again.setting;
    taken_->ours = {*again.setting};
    ZEUS_RETURN_IF_ERROR(places_.journal.Note(*actuator_, taken_->before, taken_->noted));
  }
  return Ok();
}

Status KnobWorker::PutBack() {
  if (!taken_) return Ok();
  // Nothing tells the place of a lock of clocks: what was set is given for a limit only.
  auto put_back = PutBackIfOurs(*actuator_, taken_->before, taken_->ours);
  AuditEntry entry{.event = "knob put back",
                   .from = TextOf(taken_->value),
                   .to = ToText(taken_->before),
                   .effective = ToText(taken_->before)};
  if (!put_back.ok()) {
    lost_ = put_back.error().code == ErrorCode::kUnavailable;
    if (!restore_pending_) Audit(std::move(entry), put_back.error());
    return std::move(put_back).error().While("put back the " + name_);
  }
  if (put_back.value() == KnobReturn::kNotOurs) {
    entry.event = "knob left as others set it";
    entry.effective = taken_->foreign ? zeus::ToText(*taken_->foreign) : "";
  }
  Audit(std::move(entry), Ok());
  WaitForAudit();
  return Forget();
}

// An entry that could not be removed is removed before anything else is done with the knob: it is
// this process's, also while its folder cannot be read.
Status KnobWorker::RemoveEntry() {
  if (!entry_left_) return Ok();
  ZEUS_RETURN_IF_ERROR(places_.journal.Release(*actuator_));
  entry_left_ = false;
  return Ok();
}

Status KnobWorker::Forget() {
  taken_.reset();
  Status released = places_.journal.Release(*actuator_);
  entry_left_ = !released.ok();
  repaired_ = released.ok();
  return released;
}

// --- changes from outside ---

// A driver that was reloaded has forgotten our settings: its present ones are the new baseline. So
// has, most likely, a device that was lost and returns with another setting.
Status KnobWorker::NoticeReload(const KnobState& present) {
  const bool ours = present.setting && Contains(taken_->ours, *present.setting);
  if (ours && !was_lost_) return Ok();
  const auto mark = actuator_->EpochMark();
  const bool reloaded = actuator_->ReloadsSeen() > taken_->reloads ||
                        (mark && taken_->mark && *mark < *taken_->mark) || (was_lost_ && !ours);
  was_lost_ = false;
  if (!reloaded) return Ok();
  log::Warning("the driver of {} was reloaded: the {} is set again", actuator_->device().name,
               name_);
  Audit({.event = "driver reloaded",
         .from = TextOf(taken_->value),
         .effective = present.setting ? zeus::ToText(*present.setting) : "not locked"},
        Ok());
  return Forget();
}

void KnobWorker::NoticeForeign(const KnobState& present) {
  if (!present.setting) return;  // Drivers do not report locked clocks.
  if (Contains(taken_->ours, *present.setting)) {
    taken_->foreign.reset();
    return;
  }
  if (taken_->foreign && SameSetting(*taken_->foreign, *present.setting)) return;
  taken_->foreign = present.setting;
  ++foreign_changes_;
  log::Warning("another program set the {} to {}", name_, zeus::ToText(*present.setting));
  Audit({.event = "knob changed by others",
         .from = TextOf(taken_->value),
         .effective = zeus::ToText(*present.setting)},
        Ok());
}

bool KnobWorker::MayReassert(const KnobRules& rules, bool above_budget) {
  const bool by_policy =
      rules.foreign == ForeignPolicy::kReassert && taken_->reasserts < kMostReasserts;
  if (!by_policy && !above_budget) return false;
  const TimePoint now = places_.clock.Now();
  if (taken_->last_reassert && now - *taken_->last_reassert < kBetweenReasserts) return false;
  ++taken_->reasserts;
  taken_->last_reassert = now;
  return true;
}

// --- turning ---

Status KnobWorker::TurnTo(const Resolution& resolution, const Claims& claims) {
  Taken& taken = *taken_;
  const bool settled = !taken.uncertain && !taken.foreign;
  if (settled && SameValue(taken.value, resolution.effective)) return Ok();
  const std::string from = taken.foreign ? zeus::ToText(*taken.foreign) : TextOf(taken.value);
  const Setting target =
      NotedAs(resolution.effective, taken.before.setting.value_or(choices_.highest));
  ZEUS_RETURN_IF_ERROR(Note(target));
  const Status written = Write(resolution.effective);
  AuditEntry entry{.event = "knob set", .from = from};
  entry.effective = TextOf(resolution.effective);
  for (const Claim& claim : claims.claims) {
    if (claim.lease != resolution.bound_by) continue;
    entry.lease = claim.lease;
    entry.subject = claim.subject;
    entry.to = DemandText(claim.demand);
  }
  if (written.ok()) {
    taken.ours = {target};
    taken.value = resolution.effective;
    taken.written = true;
    taken.uncertain = false;
    taken.foreign.reset();
  }
  Audit(std::move(entry), written);
  if (written.ok()) return Ok();
  SettleAfterFailure(written.error());
  return written.error().While(name_);
}

// The journal learns of a setting before the device does: a process that finds either of the two
// after a SIGKILL knows that it is ours. Noted clocks could not be compared with the present one.
Status KnobWorker::Note(const Setting& target) {
  Taken& taken = *taken_;
  if (!Contains(taken.ours, target)) taken.ours.push_back(target);
  if (IsClock(actuator_->kind()) || Contains(taken.noted, target)) return Ok();
  ZEUS_RETURN_IF_ERROR(places_.journal.Note(*actuator_, taken.before, taken.ours));
  taken.noted = taken.ours;
  return Ok();
}

Status KnobWorker::Write(const std::optional<wire::KnobValue>& value) {
  if (!value) return actuator_->PutBack({.setting = taken_->before.setting});
  if (const auto* range = std::get_if<ClockRange>(&*value)) return actuator_->ApplyRange(*range);
  return actuator_->Apply(std::get<Setting>(*value));
}

void KnobWorker::SettleAfterFailure(const Error& error) {
  taken_->uncertain = true;
  if (IsRefusal(error) && !taken_->written) {
    // Nothing was changed, and nothing could be put back.
    if (const Status gone = Forget(); !gone.ok()) log::Warning("{}", gone.error().message);
    return;
  }
  const auto present = ReadPresent();
  if (present.ok() && present.value().setting && Contains(taken_->ours, *present.value().setting))
    taken_->ours = {*present.value().setting};
}

Status KnobWorker::CheckCeiling(const Claims& claims, const Resolution& resolution,
                                const KnobRules& rules) const {
  const std::optional<Setting>& found = taken_->before.setting;
  if (rules.may_raise || !found) return Ok();
  for (const Claim& claim : claims.claims) {
    const auto* exactly = std::get_if<wire::Exactly>(&claim.demand);
    if (exactly == nullptr || resolution.overruled.contains(claim.lease)) continue;
    if (exactly->value <= *found || SameSetting(exactly->value, *found)) continue;
    return Error{ErrorCode::kConflict,
                 fmt::format("the {} was found at {} and is not raised to {}: an administrator "
                             "allows it with \"may_raise\": true in /etc/zeus/knobs.json",
                             name_, zeus::ToText(*found), zeus::ToText(exactly->value))};
  }
  return Ok();
}

std::optional<wire::KnobValue> KnobWorker::Enforced() {
  if (IsClock(actuator_->kind())) return std::nullopt;  // No driver tells.
  const auto in_force = actuator_->InForce();
  if (!in_force.ok() || !in_force.value()) return std::nullopt;
  return wire::KnobValue(*in_force.value());
}

// --- words ---

std::string KnobWorker::TextOf(const std::optional<wire::KnobValue>& value) const {
  if (value) return ToText(*value);
  if (taken_) return ToText(taken_->before);
  return IsClock(actuator_->kind()) ? "not locked" : "";
}

// The journal forgets a knob only after the log has its line: whenever this process is killed,
// either its log or that of the next daemon tells of the change.
void KnobWorker::WaitForAudit() const {
  if (places_.audit != nullptr) places_.audit->WaitUntilWritten(kLongestAuditWait);
}

void KnobWorker::Audit(AuditEntry entry, const Status& outcome) const {
  if (places_.audit == nullptr) return;
  entry.knob = key_;
  if (entry.lease.empty()) entry.lease = leases_;
  if (entry.subject.empty()) entry.subject = subject_;
  entry.outcome = outcome.ok() ? "ok" : outcome.error().message;
  entry.duration = places_.clock.Now() - began_;
  places_.audit->Append(std::move(entry));
}

}  // namespace zeus::daemon
