#include "zeus/optimizer/power_limit/power_limit_optimizer.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "zeus/base/log.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

// Under a rule of time. Fewer tell nothing about how steps differ.
constexpr std::int64_t kFewestSteps = 2;

// The precision of a slice is looked at after this many steps, then after half as many more each.
constexpr std::int64_t kFirstCheck = 4;

// Sensors show the end of a slice within two of their updates.
constexpr Seconds kSettlingTime = 1s;

// A setting may be changed by others at any time; asking the driver takes up to a millisecond.
constexpr Seconds kLookInterval = 1s;

// How often a setting is tried that is not in force all the time.
constexpr int kTries = 2;

}  // namespace

PowerLimitOptimizer::PowerLimitOptimizer(const Parts& parts, Options options)
    : parts_(parts),
      ranks_(parts.collective),
      options_(std::move(options)),
      state_(Ready{.steps_left = options_.rule.wait_steps}),
      builder_({}, {}) {
  if (const Status started = Start(); !started.ok()) Fail(started.error());
}

PowerLimitOptimizer::~PowerLimitOptimizer() {
  parts_.meter.Cancel();
  if (const Status restored = parts_.knob.Restore(); !restored.ok())
    log::Failure("{}", restored.error().message);
}

// --- from step to step ---

void PowerLimitOptimizer::Advance() {
  CompleteStep();
  if (const Status moved = Move(Moment::kBeforeStep); !moved.ok()) return Fail(moved.error());
  if (const auto setting = SettingInForce(); setting && !done_) ++steps_at_[*setting];
  stepping_ = true;
  step_begin_ = parts_.clock.Now();
}

void PowerLimitOptimizer::Pause() {
  CompleteStep();
  if (const Status moved = Move(Moment::kBetweenEpochs); !moved.ok()) Fail(moved.error());
}

void PowerLimitOptimizer::CompleteStep() {
  if (!std::exchange(stepping_, false)) return;
  const Seconds time = parts_.clock.Now() - step_begin_;
  if (auto* ready = std::get_if<Ready>(&state_)) --ready->steps_left;
  if (auto* warmup = std::get_if<Warmup>(&state_)) {
    ++warmup->steps;
    warmup->time += time;
  }
  if (auto* profiling = std::get_if<Profiling>(&state_)) {
    ++profiling->steps;
    profiling->time += time;
    builder_.record(profiling->current).AddStep(time);
    if (profiling->measuring && parts_.clock.Now() >= next_look_)
      LookWhetherInForce(profiling->current);
  }
  if (auto* settling = std::get_if<Settling>(&state_)) settling->time += time;
}

Status PowerLimitOptimizer::Move(Moment moment) {
  // One after the other: what ends one state may at once be the end of the next.
  if (const auto* ready = std::get_if<Ready>(&state_))
    ZEUS_RETURN_IF_ERROR(MoveOn(Ready(*ready), moment));
  if (const auto* profiling = std::get_if<Profiling>(&state_))
    ZEUS_RETURN_IF_ERROR(MoveOn(Profiling(*profiling), moment));
  if (const auto* warmup = std::get_if<Warmup>(&state_))
    ZEUS_RETURN_IF_ERROR(MoveOn(Warmup(*warmup), moment));
  if (const auto* settling = std::get_if<Settling>(&state_))
    ZEUS_RETURN_IF_ERROR(MoveOn(Settling(*settling)));
  return Ok();
}

Status PowerLimitOptimizer::MoveOn(const Ready& ready, Moment moment) {
  if (ready.steps_left > 0 || moment == Moment::kBetweenEpochs) return Ok();
  return TryFrom(0);
}

Status PowerLimitOptimizer::TryFrom(std::size_t setting) {
  const auto next = builder_.NextUnknown(setting);
  if (!next) {
    state_ = Settling{};
    return Ok();
  }
  ZEUS_TRY(const bool turned, Turn(*next));
  if (!turned) return TryFrom(*next + 1);
  in_force_ = *next;
  state_ = Warmup{.current = *next};
  return Ok();
}

Result<bool> PowerLimitOptimizer::Turn(std::size_t setting) {
  Status set = parts_.knob.Set(builder_.setting(setting));
  const bool lowered = !set.ok() && set.error().code == ErrorCode::kConflict;
  std::vector<double> anywhere{lowered ? 1.0 : 0.0};
  ZEUS_RETURN_IF_ERROR(ranks_.Max(anywhere));
  if (anywhere[0] == 0.0) {
    ZEUS_RETURN_IF_ERROR(ranks_.Together(std::move(set)));
    return true;
  }
  LeaveOut(setting, lowered ? set.error().message : "another rank may not set it");
  return false;
}

void PowerLimitOptimizer::LeaveOut(std::size_t setting, std::string reason) {
  log::Warning("{} is left out of the profile: {}", ToText(builder_.setting(setting)), reason);
  left_out_.push_back({builder_.setting(setting), std::move(reason)});
  tries_ = 0;
}

Status PowerLimitOptimizer::TryAgainOrLeaveOut(std::size_t setting) {
  builder_.record(setting).StartOver();
  if (++tries_ < kTries) return TryFrom(setting);
  LeaveOut(setting, disturbed_ ? disturbed_->message : "it was not in force on another rank");
  return TryFrom(setting + 1);
}

void PowerLimitOptimizer::LookWhetherInForce(std::size_t setting) {
  const Status in_force = parts_.knob.CheckInForce(builder_.setting(setting));
  if (!in_force.ok() && !disturbed_) disturbed_ = in_force.error();
  next_look_ = parts_.clock.Now() + kLookInterval;
}

// All ranks must ask.
Result<bool> PowerLimitOptimizer::WasInForce(std::size_t setting) {
  LookWhetherInForce(setting);
  std::vector<double> anywhere{disturbed_ ? 1.0 : 0.0};
  ZEUS_RETURN_IF_ERROR(ranks_.Max(anywhere));
  return anywhere[0] == 0.0;
}

Status PowerLimitOptimizer::MoveOn(const Warmup& warmup, Moment moment) {
  const SliceRule::Length& length = options_.rule.warmup;
  const bool none = !length.steps && !length.time;
  ZEUS_TRY(const bool over, IsOver(length, warmup.steps, warmup.time, 0));
  if ((!over && !none) || moment == Moment::kBetweenEpochs) return Ok();
  next_check_ = kFirstCheck;
  state_ = Profiling{.current = warmup.current};
  return BeginSlice(warmup.current);
}

Status PowerLimitOptimizer::MoveOn(const Profiling& profiling, Moment moment) {
  const SliceRule::Length& length = options_.rule.profile;
  const std::int64_t least = length.time ? kFewestSteps : 1;
  ZEUS_TRY(bool over, IsOver(length, profiling.steps, profiling.time, least));
  if (!over && profiling.measuring && options_.rule.enough_precision > 0 &&
      profiling.steps >= next_check_) {
    next_check_ = profiling.steps + std::max<std::int64_t>(profiling.steps / 2, 1);
    ZEUS_TRY(over, PreciseEnough(profiling.current));
  }
  if (profiling.measuring && (over || moment == Moment::kBetweenEpochs)) {
    ZEUS_RETURN_IF_ERROR(EndSlice());
    ZEUS_TRY(const bool in_force, WasInForce(profiling.current));
    if (!in_force) return TryAgainOrLeaveOut(profiling.current);
  }
  if (over) {
    tries_ = 0;
    return TryFrom(profiling.current + 1);
  }
  if (!profiling.measuring && moment == Moment::kBeforeStep) return BeginSlice(profiling.current);
  return Ok();
}

Status PowerLimitOptimizer::MoveOn(const Settling& settling) {
  ZEUS_TRY(const bool final, builder_.Update(parts_.meter, ranks_));
  ZEUS_RETURN_IF_ERROR(Decide());
  ZEUS_TRY(const bool over, ranks_.AtLeader(final || settling.time >= kSettlingTime));
  if (over) Finish();
  return Ok();
}

// --- slices ---

Status PowerLimitOptimizer::BeginSlice(std::size_t setting) {
  disturbed_.reset();
  LookWhetherInForce(setting);
  ZEUS_RETURN_IF_ERROR(ranks_.Together(parts_.meter.Begin(ToText(builder_.setting(setting)))));
  std::get<Profiling>(state_).measuring = true;
  return Ok();
}

Status PowerLimitOptimizer::EndSlice() {
  auto& profiling = std::get<Profiling>(state_);
  profiling.measuring = false;
  const auto ticket = parts_.meter.End();
  if (ticket.ok()) builder_.record(profiling.current).AddSlice(ticket.value());
  return ranks_.Together(ticket.ok() ? Ok() : Status(ticket.error()));
}

// Steps are counted alike everywhere; clocks are not, so the first rank's counts.
Result<bool> PowerLimitOptimizer::IsOver(const SliceRule::Length& length, std::int64_t steps,
                                         Seconds time, std::int64_t least_steps) {
  if (steps < least_steps) return false;
  if (length.steps && steps >= *length.steps) return true;
  if (!length.time) return false;
  return ranks_.AtLeader(time >= *length.time);
}

Result<bool> PowerLimitOptimizer::PreciseEnough(std::size_t setting) {
  const auto peek = parts_.meter.Peek();
  ZEUS_TRY(const double energy_error,
           builder_.EnergyPrecision(setting, peek.ok() ? std::optional(peek.value()) : std::nullopt,
                                    parts_.meter, ranks_));
  const double time_error = builder_.record(setting).times().RelativeError();
  return ranks_.AtLeader(std::max(energy_error, time_error) <= options_.rule.enough_precision);
}

// --- the decision ---

Status PowerLimitOptimizer::Decide() {
  if (profile().points.empty() && !left_out_.empty())
    return Error{ErrorCode::kUnavailable,
                 "no setting could be measured: " + left_out_.front().reason};
  ZEUS_TRY(best_, SelectTogether());
  if (options_.mode == OptimizerMode::kObserve) {
    in_force_.reset();
    return ranks_.Together(parts_.knob.Restore());
  }
  if (in_force_ == best_) return Ok();
  in_force_ = best_;
  return ranks_.Together(parts_.knob.Set(builder_.setting(*best_)));
}

// The function may be the user's.
Result<std::size_t> PowerLimitOptimizer::Selected() const {
  try {
    return options_.selector.select(profile());
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInvalidArgument, exception.what()};
  }
}

// The first rank's choice, so that no selector of the user can tear the job apart.
Result<std::size_t> PowerLimitOptimizer::SelectTogether() {
  const auto selected = Selected();
  const bool valid = selected.ok() && selected.value() < profile().points.size();
  Status outcome = Ok();
  if (!selected.ok())
    outcome = selected.error().While("choose by " + options_.selector.name);
  else if (!valid)
    outcome = Error{ErrorCode::kInvalidArgument,
                    options_.selector.name + " chose a setting that is not in the profile"};
  ZEUS_RETURN_IF_ERROR(ranks_.Together(std::move(outcome)));
  ZEUS_TRY(const std::vector<double> chosen,
           ranks_.FromLeader({static_cast<double>(selected.value())}));
  return *builder_.Find(profile().points[static_cast<std::size_t>(chosen.front())].setting);
}

void PowerLimitOptimizer::Finish() {
  if (left_out_.empty()) builder_.Complete();
  state_ = Done{};
  done_ = true;
}

void PowerLimitOptimizer::Fail(const Error& error) {
  trouble_ = error;
  log::Warning("the job goes on but is not optimised: {}", error.message);
  parts_.meter.Cancel();
  if (const Status restored = parts_.knob.Restore(); !restored.ok())
    log::Failure("{}", restored.error().message);
  in_force_.reset();
  best_.reset();
  state_ = Done{};
  done_ = true;
}

}  // namespace zeus
