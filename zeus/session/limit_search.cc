#include "zeus/session/limit_search.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/optimizer/power_limit/selector.h"
#include "zeus/session/sweep_report.h"
#include "zeus/training/profile_folder.h"

namespace zeus {
namespace {

bool Has(const Profile& profile, const Setting& setting) {
  return std::ranges::find(profile.points, setting, &ProfilePoint::setting) != profile.points.end();
}

}  // namespace

LimitSearch::LimitSearch(const Parts& parts, const LimitPlan& plan, const Run& run)
    : parts_(parts), plan_(plan), run_(run) {}

ProfileContext LimitSearch::Context() const {
  ProfileContext context{.job = run_.job,
                         .batch_size = static_cast<unsigned>(run_.batch_size),
                         .driver = parts_.devices.driver(),
                         .date = parts_.clock.WallNow()};
  // A step of one is an epoch of the other.
  if (parts_.progress == nullptr) context.job += " (epochs)";
  context.devices = static_cast<int>(parts_.devices.turned().size());
  for (const JobKnob::Device& device : parts_.devices.turned()) {
    context.device_model = device.model;
    if (!device.uuid.empty()) context.uuids.push_back(device.uuid);
  }
  return context;
}

void LimitSearch::Begin() {
  if (const Status prepared = Prepare(); !prepared.ok()) Settle(prepared);
}

Status LimitSearch::Prepare() {
  if (plan_.mode == LimitMode::kFound) {
    settled_ = true;
    return Ok();
  }
  Knob& knob = parts_.devices.knob();
  ZEUS_TRY(const std::vector<Setting> offered, knob.Settings(plan_.stride));
  if (plan_.mode == LimitMode::kMax || plan_.mode == LimitMode::kFixed) {
    settled_ = true;
    chosen_ = plan_.mode == LimitMode::kMax ? offered.front() : Setting(plan_.fixed);
    ZEUS_TRY(const Setting current, knob.Current());
    turned_ = current != *chosen_;
    return turned_ ? knob.Set(*chosen_) : Ok();
  }
  ceiling_ = offered.front();
  wanted_ = plan_.settings.empty() ? offered : plan_.settings;
  const auto above = std::erase_if(wanted_, [&](const Setting& s) { return s > *ceiling_; });
  if (above > 0)
    log::Warning("limits above {}, which was found, are not tried: --may-raise allows them",
                 ToText(*ceiling_));
  settled_ = wanted_.empty();
  if (settled_) return Ok();
  if (!plan_.profiles.empty()) {
    auto found = ProfileFolder(plan_.profiles).Find(Context(), knob.kind());
    if (found) known_ = std::move(*found);
  }
  profile_ = known_;
  std::ranges::copy_if(wanted_, std::back_inserter(missing_),
                       [this](const Setting& setting) { return !Has(known_, setting); });
  return missing_.empty() ? Decide() : StartSearch();
}

Status LimitSearch::StartSearch() {
  Knob& knob = parts_.devices.knob();
  turned_ = true;
  // Found out before an epoch is measured at a limit that it does not have.
  ZEUS_RETURN_IF_ERROR(knob.Set(missing_.front()));
  ZEUS_RETURN_IF_ERROR(knob.Restore());
  searched_ = true;
  if (parts_.progress == nullptr) {
    epochs_ = std::make_unique<EpochSweep>(knob, parts_.devices.meter(), missing_);
    return Ok();
  }
  SweepPlan plan = plan_.slices;
  plan.settings = missing_.size();
  sweep_ = std::make_unique<Sweep>(
      Sweep::Parts{parts_.clock, knob, parts_.devices.meter(), parts_.progress}, missing_, plan);
  return Ok();
}

TimePoint LimitSearch::Step() {
  if (!settled_ && !ended_ && epochs_ != nullptr) return epochs_->Look(parts_.clock.Now());
  if (settled_ || ended_ || sweep_ == nullptr) return TimePoint::max();
  const TimePoint next = sweep_->Step();
  if (!sweep_->done()) return next;
  if (sweep_->trouble()) {
    Settle(*sweep_->trouble());
  } else if (const Status decided = Decide(); !decided.ok()) {
    Settle(decided);
  }
  return TimePoint::max();
}

void LimitSearch::EpochEnded() {
  if (settled_ || ended_ || epochs_ == nullptr) return;
  Status moved = epochs_->EpochEnded();
  if (moved.ok()) moved = epochs_->done() ? Decide() : Merge();
  if (!moved.ok()) Settle(moved);
}

void LimitSearch::EpochsLumped() {
  if (!settled_ && !ended_ && epochs_ != nullptr) epochs_->EpochsLumped();
}

// With what this run has measured so far.
Status LimitSearch::Merge() {
  if (!searched_) return Ok();
  Knob& knob = parts_.devices.knob();
  SweepReport report;
  report.label = Context().job;
  report.knob = knob.kind();
  report.max_power = knob.max_power();
  report.settings = missing_;
  if (sweep_ != nullptr) report.slices = sweep_->slices();
  if (epochs_ != nullptr) {
    ZEUS_TRY(report.slices, epochs_->Slices());
  }
  // Slices in which the program made no steps say nothing about it.
  std::erase_if(report.slices, [](const MeasuredSlice& slice) { return !slice.rate; });
  Evaluate(report, {.eta = run_.eta});
  Profile fresh = ToProfile(report);
  fresh.context = Context();
  fresh.shared_error = std::max(fresh.shared_error, known_.shared_error);
  for (const ProfilePoint& point : known_.points)
    if (!Has(fresh, point.setting)) fresh.points.push_back(point);
  std::ranges::sort(fresh.points, std::greater<>(),
                    [](const ProfilePoint& point) { return ToNumber(point.setting); });
  fresh.complete = std::ranges::all_of(
      wanted_, [&fresh](const Setting& setting) { return Has(fresh, setting); });
  profile_ = std::move(fresh);
  return Ok();
}

Status LimitSearch::Decide() {
  ZEUS_RETURN_IF_ERROR(Merge());
  settled_ = true;
  Knob& knob = parts_.devices.knob();
  ZEUS_RETURN_IF_ERROR(knob.Restore());
  SayLeftOut();
  if (Allowed().points.empty())
    return Error{ErrorCode::kUnavailable,
                 "the command made no steps while power limits were tried: see --progress-regex "
                 "and --slice"};
  const Profile allowed = Allowed();
  ZEUS_TRY(const std::size_t best, ZeusCost(run_.eta).select(allowed));
  chosen_ = allowed.points[best].setting;
  turned_ = turned_ || plan_.mode == LimitMode::kJit;
  return plan_.mode == LimitMode::kJit ? knob.Set(*chosen_) : Ok();
}

void LimitSearch::Settle(const Status& status) {
  settled_ = true;
  if (epochs_ != nullptr) epochs_->Stop();
  if (sweep_ != nullptr) sweep_->Stop();
  if (!status.ok()) trouble_ = status.error();
  chosen_.reset();
  PutBack();  // The present setting is not known to be good.
}

// A limit that stays changed is worse than whatever was the trouble before.
void LimitSearch::PutBack() {
  const Status restored = parts_.devices.knob().Restore();
  left_changed_ = !restored.ok();
  if (left_changed_) trouble_ = restored.error();
}

void LimitSearch::SayLeftOut() {
  std::vector<SkippedSlice> skipped;
  if (sweep_ != nullptr) skipped = sweep_->skipped();
  if (epochs_ != nullptr) skipped = epochs_->skipped();
  for (const SkippedSlice& slice : skipped)
    log::Warning("{} is left out of the profile: {}", ToText(missing_[slice.setting]),
                 slice.reason);
}

Profile LimitSearch::Allowed() const {
  Profile allowed = profile_;
  if (ceiling_)
    std::erase_if(allowed.points,
                  [this](const ProfilePoint& point) { return point.setting > *ceiling_; });
  return allowed;
}

void LimitSearch::End() {
  if (std::exchange(ended_, true)) return;
  if (epochs_ != nullptr) epochs_->Stop();
  if (sweep_ != nullptr) sweep_->Stop();
  PutBack();
  Status kept = Merge();
  if (kept.ok()) kept = Keep();
  if (!kept.ok())
    log::Warning("what was learned about power limits is lost: {}", kept.error().message);
}

Status LimitSearch::Keep() const {
  if (!searched_ || worthless_ || plan_.profiles.empty() ||
      profile_.points.size() <= known_.points.size())
    return Ok();
  ZEUS_TRY([[maybe_unused]] const auto file, ProfileFolder(plan_.profiles).Save(profile_));
  return Ok();
}

std::optional<Watts> LimitSearch::in_force() {
  const auto current = parts_.devices.knob().Current();
  if (!current.ok()) return std::nullopt;
  const auto* watts = std::get_if<Watts>(&current.value());
  return watts != nullptr ? std::optional(*watts) : std::nullopt;
}

std::optional<ProfilePoint> LimitSearch::EpochAtBest() const {
  if (parts_.progress != nullptr || plan_.mode != LimitMode::kJit || profile_.points.empty())
    return std::nullopt;
  const Profile allowed = Allowed();
  const auto best = ZeusCost(run_.eta).select(allowed);
  return best.ok() && !trouble_ ? std::optional(allowed.points[best.value()]) : std::nullopt;
}

}  // namespace zeus
