#include "zeus/session/run_power_limit.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/optimizer/power_limit/scheduler_wishes.h"
#include "zeus/session/limit_follower.h"
#include "zeus/training/profile_folder.h"

namespace zeus {
namespace {

// Relative scatter of the epochs of one program at one setting; a single epoch shows none.
constexpr double kScatterOfEpochs = 0.005;

// A limit that follows carbon or price is chosen so often: these change every five minutes at most.
constexpr Seconds kFollowPeriod = std::chrono::minutes(1);

bool HasPoint(const Profile& profile, const Setting& setting) {
  return std::ranges::find(profile.points, setting, &ProfilePoint::setting) != profile.points.end();
}

// The first epoch contains the start of the program and is left alone; then each limit is measured
// for one epoch.
SliceRule RuleOfEpochs() { return SliceRule::BySteps(1, 0, 1); }

}  // namespace

RunPowerLimit::RunPowerLimit(const Parts& parts, const LimitPlan& plan, Run run)
    : parts_(parts), plan_(plan), run_(std::move(run)) {}

ProfileContext RunPowerLimit::Context() const {
  ProfileContext context{.job = run_.job,
                         .batch_size = static_cast<unsigned>(run_.batch_size),
                         .driver = parts_.devices.driver(),
                         .date = parts_.clock.WallNow()};
  // The points of a profile are per step or per epoch, and must not be confused.
  if (parts_.progress == nullptr) context.job += " (epochs)";
  context.devices = static_cast<int>(parts_.devices.turned().size());
  for (const JobKnob::Device& device : parts_.devices.turned()) {
    context.device_model = device.model;
    if (!device.uuid.empty()) context.uuids.push_back(device.uuid);
  }
  return context;
}

void RunPowerLimit::Begin() {
  if (const Status prepared = Prepare(); !prepared.ok()) Fail(prepared.error());
}

Status RunPowerLimit::Prepare() {
  if (plan_.mode == LimitMode::kFound) return Ok();
  Knob& knob = parts_.devices.knob();
  ZEUS_TRY(const std::vector<Setting> offered, knob.Settings(plan_.stride));
  if (plan_.mode == LimitMode::kMax || plan_.mode == LimitMode::kFixed) {
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
  if (wanted_.empty()) return Ok();
  if (!plan_.profiles.empty()) {
    auto found = ProfileFolder(plan_.profiles).Find(Context(), knob.kind());
    if (found) known_ = std::move(*found);
  }
  // Limits that earlier runs measured take part in the choice as well.
  std::vector<Setting> settings = wanted_;
  for (const ProfilePoint& point : known_.points)
    if (point.setting <= *ceiling_ && std::ranges::find(wanted_, point.setting) == wanted_.end())
      settings.push_back(point.setting);
  searched_ = std::ranges::any_of(
      wanted_, [this](const Setting& setting) { return !HasPoint(known_, setting); });
  turned_ = searched_ || plan_.mode == LimitMode::kJit;
  if (searched_) {
    // Finds out before an epoch is measured that limits cannot be set.
    ZEUS_RETURN_IF_ERROR(knob.Set(wanted_.front()));
    ZEUS_RETURN_IF_ERROR(knob.Restore());
  }
  return StartSearch(std::move(settings));
}

Selector RunPowerLimit::Objective() const {
  return Within({.max_slowdown = plan_.max_slowdown}, ZeusCost(run_.eta));
}

Status RunPowerLimit::StartSearch(std::vector<Setting> settings) {
  PowerLimitOptimizer::Options options{.selector = Objective()};
  options.mode = plan_.mode == LimitMode::kJit ? OptimizerMode::kOptimize : OptimizerMode::kObserve;
  options.settings = std::move(settings);
  options.try_present = false;
  options.context = Context();
  options.known = known_;
  options.log = false;
  if (parts_.progress != nullptr) {
    options.rule.warmup = {.time = plan_.warmup};
    options.rule.profile = {.time = plan_.slice};
  } else {
    options.rule = RuleOfEpochs();
    options.least_scatter = kScatterOfEpochs;
  }
  search_ = std::make_unique<PowerLimitOptimizer>(
      PowerLimitOptimizer::Parts{parts_.clock, parts_.devices.knob(), parts_.devices.meter(),
                                 alone_, parts_.progress},
      std::move(options));
  if (parts_.progress == nullptr) search_->OnStepBegin();  // The first epoch.
  if (search_->done()) NoteEnd();
  return Ok();
}

bool RunPowerLimit::limit_is_final() const {
  return ended_ || search_ == nullptr || search_->done() ||
         std::holds_alternative<PowerLimitOptimizer::Confirming>(search_->state());
}

TimePoint RunPowerLimit::Poll() {
  if (ended_ || search_ == nullptr) return TimePoint::max();
  if (search_->done()) {
    // Steps are not needed any more.
    if (parts_.progress != nullptr) parts_.progress->ForgetBefore(parts_.clock.Now());
    Follow();
    return TimePoint::max();
  }
  const TimePoint next = search_->Poll();
  if (search_->done()) NoteEnd();
  return next;
}

void RunPowerLimit::Follow() {
  const auto best = search_->best();
  if (plan_.follower == nullptr || plan_.mode != LimitMode::kJit || trouble_ || !best ||
      parts_.clock.Now() < next_follow_)
    return;
  next_follow_ = parts_.clock.Now() + kFollowPeriod;
  const auto limit = plan_.follower->LimitNow(search_->profile(), *best, run_.eta);
  if (!limit) return;
  if (!follow_meter_) {
    follow_meter_.emplace(parts_.devices.NewMeter());
    if (!follow_meter_->Begin("follow").ok()) return;
  }
  if (const auto energy = follow_meter_->Peek(); energy.ok())
    plan_.follower->Note(energy.value().energy, *limit);
  const auto current = parts_.devices.knob().Current();
  if (current.ok() && current.value() == Setting(*limit)) return;
  if (const Status set = parts_.devices.knob().Set(*limit); !set.ok()) Fail(set.error());
}

void RunPowerLimit::EpochEnded() {
  if (ended_ || search_ == nullptr || search_->done() || parts_.progress != nullptr) return;
  search_->OnStepBegin();
  if (search_->done()) NoteEnd();
}

void RunPowerLimit::EpochsLumped() {
  if (!ended_ && search_ != nullptr && parts_.progress == nullptr) search_->DropStep();
}

void RunPowerLimit::NoteEnd() {
  if (std::exchange(noted_, true)) return;
  for (const PowerLimitOptimizer::LeftOut& left_out : search_->left_out())
    log::Warning("{} is left out of the profile: {}", ToText(left_out.setting), left_out.reason);
  if (search_->trouble()) Fail(*search_->trouble());
}

void RunPowerLimit::Fail(const Error& error) {
  trouble_ = error;
  chosen_.reset();
  Restore();  // The present setting is not known to be good.
}

// A limit that stays changed is worse than any trouble before it.
void RunPowerLimit::Restore() {
  const Status restored = parts_.devices.knob().Restore();
  left_changed_ = !restored.ok();
  if (left_changed_) trouble_ = restored.error();
}

void RunPowerLimit::End() {
  if (std::exchange(ended_, true)) return;
  if (follow_meter_) {
    next_follow_ = TimePoint{};
    Follow();  // Notes the energy of the last limit.
    follow_meter_.reset();
  }
  if (search_ != nullptr && !search_->done()) search_->Stop();
  if (search_ != nullptr && search_->trouble() && !trouble_) trouble_ = search_->trouble();
  Restore();
  if (const Status kept = Keep(); !kept.ok())
    log::Warning("what was learned about power limits is lost: {}", kept.error().message);
}

// The profile of this run with the points that it did not try.
Profile RunPowerLimit::Merged() const {
  Profile merged = search_->profile();
  merged.shared_error = std::max(merged.shared_error, known_.shared_error);
  for (const ProfilePoint& point : known_.points)
    if (!HasPoint(merged, point.setting)) merged.points.push_back(point);
  std::ranges::sort(merged.points, std::greater<>(),
                    [](const ProfilePoint& point) { return ToNumber(point.setting); });
  merged.complete = std::ranges::all_of(
      wanted_, [&merged](const Setting& setting) { return HasPoint(merged, setting); });
  return merged;
}

Status RunPowerLimit::Keep() const {
  if (!searched_ || worthless_ || plan_.profiles.empty() || search_ == nullptr) return Ok();
  const Profile merged = Merged();
  if (merged.points.size() <= known_.points.size()) return Ok();
  ZEUS_TRY([[maybe_unused]] const auto file, ProfileFolder(plan_.profiles).Save(merged));
  return Ok();
}

std::optional<Watts> RunPowerLimit::in_force() {
  const auto current = parts_.devices.knob().Current();
  if (!current.ok()) return std::nullopt;
  const auto* watts = std::get_if<Watts>(&current.value());
  return watts != nullptr ? std::optional(*watts) : std::nullopt;
}

std::optional<Setting> RunPowerLimit::chosen() const {
  if (search_ == nullptr || trouble_) return chosen_;
  const auto best = search_->best();
  return best ? std::optional(search_->profile().points[*best].setting) : std::nullopt;
}

std::optional<ProfilePoint> RunPowerLimit::EpochAtBest() {
  if (parts_.progress != nullptr || plan_.mode != LimitMode::kJit || search_ == nullptr || trouble_)
    return std::nullopt;
  if (!search_->UpdateProfile().ok()) return std::nullopt;
  const Profile& profile = search_->profile();
  if (profile.points.empty()) return std::nullopt;
  const auto best = Objective().select(profile);
  return best.ok() ? std::optional(profile.points[best.value()]) : std::nullopt;
}

}  // namespace zeus
