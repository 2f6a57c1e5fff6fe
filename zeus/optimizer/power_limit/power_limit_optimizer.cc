// The search is a state machine: Ready, then for each setting Warmup and Profiling, then
// Confirming, then Done. It moves at steps of the job (OnStepBegin) or at moments (Poll). A slice
// ends when its rule says so, or earlier, once time and energy of a step are known precisely
// enough. After the last slice the search waits until the sensors have shown how it ended,
// exchanges profiles between ranks, and sets the choice of the first rank everywhere. Every error
// leads to Fail(), which restores the knob.
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/device/knobs/guarded_knob.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

// Under a rule of time. Fewer tell nothing about how steps differ.
constexpr std::int64_t kFewestSteps = 2;

// The precision of a slice is looked at after this many steps, then after half as many more each.
constexpr std::int64_t kFirstCheck = 4;

// Sensors show the end of a slice within two of their updates.
constexpr Seconds kConfirmingTime = 1s;

// A setting may be changed by others at any time; asking the driver takes up to a millisecond.
constexpr Seconds kSettingCheckInterval = 1s;

// How often a setting is tried that is not in force all the time.
constexpr int kTries = 2;

// Observed jobs: how often to look for the first step and for sensors, how long sensors may take
// (the slowest update once a second), and when to check the precision of a slice: after this part
// of its length, then whenever it has grown by this factor.
constexpr Seconds kObservePeriod = 20ms;
constexpr Seconds kObservedConfirmingTime = 2s;
constexpr double kFirstCheckPart = 0.125;
constexpr double kCheckGrowth = 1.25;

// As in the paper. Clocks come in steps of 15 MHz; a dozen of them show where the best one is.
constexpr Watts kPowerStride{25};
constexpr Hertz kClockStride = Hertz::FromMega(120);

// Numbers per point of a profile on its way between ranks.
constexpr std::size_t kPointNumbers = 6;

Setting DefaultStride(KnobKind kind) {
  if (IsClock(kind)) return kClockStride;
  return kPowerStride;
}

bool Sensible(const SliceRule::Length& length) {
  return !length.time || (std::isfinite(length.time->count()) && *length.time >= Seconds(0));
}

Status Check(const SliceRule& rule) {
  if (!Sensible(rule.warmup) || !Sensible(rule.profile) || !(rule.enough_precision >= 0))
    return Error{ErrorCode::kInvalidArgument,
                 "times and the precision of a slice must be numbers of zero or more"};
  if (!rule.profile.steps && !rule.profile.time)
    return Error{ErrorCode::kInvalidArgument,
                 "a slice without a number of steps or a time would never end"};
  return Ok();
}

bool HasTheUnit(KnobKind kind, const Setting& setting) {
  return setting.index() == SettingOf(kind, 0).index();
}

void SortFastestFirst(std::vector<Setting>& settings) {
  std::ranges::sort(settings, std::greater<>());
  const auto repeated = std::ranges::unique(settings);
  settings.erase(repeated.begin(), repeated.end());
}

std::vector<double> Flatten(const Profile& profile) {
  std::vector<double> numbers{profile.complete ? 1.0 : 0.0, profile.shared_error};
  for (const ProfilePoint& point : profile.points)
    numbers.insert(numbers.end(), {ToNumber(point.setting), static_cast<double>(point.steps),
                                   point.time_per_step.count(), point.time_sigma.count(),
                                   point.energy_per_step.value(), point.energy_sigma.value()});
  return numbers;
}

void Unflatten(const std::vector<double>& numbers, Profile& profile) {
  profile.complete = numbers[0] != 0.0;
  profile.shared_error = numbers[1];
  profile.points.clear();
  for (std::size_t i = 2; i + kPointNumbers <= numbers.size(); i += kPointNumbers)
    profile.points.push_back({.setting = SettingOf(profile.knob, numbers[i]),
                              .steps = static_cast<std::int64_t>(numbers[i + 1]),
                              .time_per_step = Seconds(numbers[i + 2]),
                              .time_sigma = Seconds(numbers[i + 3]),
                              .energy_per_step = Joules(numbers[i + 4]),
                              .energy_sigma = Joules(numbers[i + 5])});
}

// Given settings that would raise the knob above where it was found.
void DropAbove(const Setting& ceiling, std::vector<Setting>& settings) {
  const auto dropped =
      std::erase_if(settings, [&](const Setting& setting) { return setting > ceiling; });
  if (dropped > 0)
    log::Warning("settings above {}, which was found, are not tried: {} of them", ToText(ceiling),
                 dropped);
}

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
    LogFailedRestore(restored.error());
}

// --- the start ---

Status PowerLimitOptimizer::Start() {
  ZEUS_RETURN_IF_ERROR(ranks_.Together(Check(options_.rule)));
  ZEUS_TRY(Profile known, ShareKnownProfile());
  const auto present = parts_.knob.Current();
  ZEUS_RETURN_IF_ERROR(ranks_.Together(present.ok() ? Ok() : Status(present.error())));
  ZEUS_RETURN_IF_ERROR(CheckAlike(present.value()));
  auto offered = SettingsToTry(present.value(), known);
  ZEUS_RETURN_IF_ERROR(ranks_.Together(offered.ok() ? Ok() : Status(offered.error())));

  std::vector<double> numbers;
  for (const Setting& setting : offered.value()) numbers.push_back(ToNumber(setting));
  ZEUS_TRY(numbers, ranks_.FromLeader(std::move(numbers)));
  std::vector<Setting> settings;
  for (const double number : numbers) settings.push_back(SettingOf(known.knob, number));

  std::vector<double> max_power{parts_.knob.max_power().value()};
  ZEUS_RETURN_IF_ERROR(ranks_.Sum(max_power));
  known.max_power = Watts(max_power.front());
  builder_ = ProfileBuilder(settings, std::move(known), options_.least_scatter);
  steps_at_.assign(settings.size(), 0);
  original_ = builder_.Find(present.value());
  for (std::size_t i = 0; i < settings.size(); ++i)
    if (!builder_.IsKnown(i)) order_.push_back(i);
  if (!order_.empty()) return Ok();
  ZEUS_RETURN_IF_ERROR(Decide());
  Finish();
  return Ok();
}

// The setting that the job began with is one of those to compare, so all ranks must have the same.
Status PowerLimitOptimizer::CheckAlike(const Setting& present) {
  const double number = ToNumber(present);
  std::vector<double> extremes{number, -number};
  ZEUS_RETURN_IF_ERROR(ranks_.Max(extremes));
  if (extremes[0] == -extremes[1]) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the {} of this rank is {}, that of others is not: set the same on all",
                           parts_.knob.name(), ToText(present))};
}

// Only some ranks may have found a profile: files are not the same everywhere.
Result<Profile> PowerLimitOptimizer::ShareKnownProfile() {
  Profile known;
  if (options_.known && options_.known->knob == parts_.knob.kind()) known = *options_.known;
  known.knob = parts_.knob.kind();
  known.context = options_.context;
  ZEUS_TRY(const std::vector<double> numbers, ranks_.FromLeader(Flatten(known)));
  Unflatten(numbers, known);
  return known;
}

Result<std::vector<Setting>> PowerLimitOptimizer::SettingsToTry(const Setting& present,
                                                                const Profile& known) {
  std::vector<Setting> settings = options_.settings;
  const KnobKind kind = parts_.knob.kind();
  for (const Setting& setting : settings)
    if (!HasTheUnit(kind, setting) || !(ToNumber(setting) > 0) || std::isinf(ToNumber(setting)))
      return Error{ErrorCode::kInvalidArgument,
                   ToText(setting) + " is no setting of the " + parts_.knob.name()};
  const Setting stride = options_.stride.value_or(DefaultStride(kind));
  if (!HasTheUnit(kind, stride) || !(ToNumber(stride) > 0))
    return Error{ErrorCode::kInvalidArgument, "a stride of " + ToText(stride) + " for the " +
                                                  parts_.knob.name() + " leads nowhere"};
  auto offered = parts_.knob.Settings(stride);
  // A device that lists nothing can have settings all the same.
  if (!offered.ok() && settings.empty()) return std::move(offered).error();
  if (offered.ok()) DropAbove(std::max(offered.value().front(), present), settings);
  if (settings.empty() && known.complete) {
    for (const ProfilePoint& point : known.points) settings.push_back(point.setting);
    if (offered.ok())
      std::erase_if(settings, [&](const Setting& setting) {
        return setting > std::max(offered.value().front(), present);
      });
    if (!settings.empty()) return settings;
  }
  if (settings.empty()) settings = std::move(offered).value();
  if (options_.try_present || settings.empty()) settings.push_back(present);
  SortFastestFirst(settings);
  return settings;
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
    if (profiling->measuring && parts_.clock.Now() >= next_setting_check_)
      CheckWhetherInForce(profiling->current);
  }
  if (auto* confirming = std::get_if<Confirming>(&state_)) confirming->time += time;
}

Status PowerLimitOptimizer::Move(Moment moment) {
  // One after the other: what ends one state may at once be the end of the next.
  if (const auto* ready = std::get_if<Ready>(&state_))
    ZEUS_RETURN_IF_ERROR(MoveOn(Ready(*ready), moment));
  if (const auto* profiling = std::get_if<Profiling>(&state_))
    ZEUS_RETURN_IF_ERROR(MoveOn(Profiling(*profiling), moment));
  if (const auto* warmup = std::get_if<Warmup>(&state_))
    ZEUS_RETURN_IF_ERROR(MoveOn(Warmup(*warmup), moment));
  if (const auto* confirming = std::get_if<Confirming>(&state_))
    ZEUS_RETURN_IF_ERROR(MoveOn(Confirming(*confirming)));
  return Ok();
}

Status PowerLimitOptimizer::MoveOn(const Ready& ready, Moment moment) {
  if (moment == Moment::kBetweenEpochs) return Ok();
  if (observed() ? !parts_.steps->Begun() : ready.steps_left > 0) return Ok();
  return TryNext();
}

Status PowerLimitOptimizer::TryNext() {
  if (observed()) {
    ZEUS_TRY(const bool final, UpdateBuilder());
    if (final) parts_.steps->ForgetBefore(parts_.clock.Now());
  }
  const std::size_t count = order_.size();
  round_ = static_cast<unsigned>(visit_ / count);
  // When a whole round was left out, another one would be as well.
  if ((options_.rounds && round_ >= *options_.rounds) || left_out_in_a_row_ >= count) {
    state_ = Confirming{};
    return Ok();
  }
  const std::size_t along = visit_++ % count;
  return Try(order_[round_ % 2 == 0 ? along : count - 1 - along]);
}

Status PowerLimitOptimizer::Try(std::size_t setting) {
  ZEUS_TRY(const bool turned, Turn(setting));
  if (!turned) return TryNext();
  in_force_ = setting;
  builder_.record(setting).BeginVisit();
  state_ = Warmup{.current = setting};
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
  if (options_.log)
    log::Warning("{} is left out of the profile: {}", ToText(builder_.setting(setting)), reason);
  left_out_.push_back({builder_.setting(setting), std::move(reason)});
  ++left_out_in_a_row_;
  tries_ = 0;
}

Status PowerLimitOptimizer::TryAgainOrLeaveOut(std::size_t setting) {
  builder_.record(setting).StartOver();
  if (++tries_ < kTries) return Try(setting);
  LeaveOut(setting, disturbed_ ? disturbed_->message : "it was not in force on another rank");
  return TryNext();
}

void PowerLimitOptimizer::CheckWhetherInForce(std::size_t setting) {
  const Status in_force = parts_.knob.CheckInForce(builder_.setting(setting));
  if (!in_force.ok() && !disturbed_) disturbed_ = in_force.error();
  next_setting_check_ = parts_.clock.Now() + kSettingCheckInterval;
}

// All ranks must ask.
Result<bool> PowerLimitOptimizer::WasInForce(std::size_t setting) {
  CheckWhetherInForce(setting);
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
  next_check_time_ = kFirstCheckPart * options_.rule.profile.time.value_or(Seconds(0));
  state_ = Profiling{.current = warmup.current};
  return BeginSlice(warmup.current);
}

Status PowerLimitOptimizer::MoveOn(const Profiling& profiling, Moment moment) {
  const SliceRule::Length& length = options_.rule.profile;
  const std::int64_t least = observed() ? 0 : (length.time ? kFewestSteps : 1);
  ZEUS_TRY(bool over, IsOver(length, profiling.steps, profiling.time, least));
  if (!over && PrecisionIsDue(profiling)) {
    ZEUS_TRY(over, observed() ? ObservedPreciselyEnough() : PreciseEnough(profiling.current));
  }
  if (profiling.measuring && (over || moment == Moment::kBetweenEpochs)) {
    ZEUS_RETURN_IF_ERROR(EndSlice());
    ZEUS_TRY(const bool in_force, WasInForce(profiling.current));
    if (!in_force) return TryAgainOrLeaveOut(profiling.current);
  }
  if (over) {
    tries_ = 0;
    left_out_in_a_row_ = 0;
    return TryNext();
  }
  if (!profiling.measuring && moment == Moment::kBeforeStep) return BeginSlice(profiling.current);
  return Ok();
}

Status PowerLimitOptimizer::MoveOn(const Confirming& confirming) {
  ZEUS_TRY(const bool final, UpdateBuilder());
  ZEUS_RETURN_IF_ERROR(Decide());
  const Seconds timeout = observed() ? kObservedConfirmingTime : kConfirmingTime;
  ZEUS_TRY(const bool over, ranks_.AtLeader(final || confirming.time >= timeout));
  if (over) Finish();
  return Ok();
}

Result<bool> PowerLimitOptimizer::UpdateBuilder() {
  if (observed()) return builder_.Update(parts_.meter, *parts_.steps);
  return builder_.Update(parts_.meter, ranks_);
}

// --- observed from outside ---

TimePoint PowerLimitOptimizer::Poll() {
  if (done_) return TimePoint::max();
  const TimePoint now = parts_.clock.Now();
  const Seconds passed = polled_ ? Seconds(now - *polled_) : Seconds(0);
  polled_ = now;
  const auto* profiling = std::get_if<Profiling>(&state_);
  if (profiling != nullptr && profiling->measuring && now >= next_setting_check_)
    CheckWhetherInForce(profiling->current);
  Status moved = Ok();
  if (observed()) {
    PassTime(passed);
    moved = Move(Moment::kBeforeStep);
  } else if (auto* confirming = std::get_if<Confirming>(&state_)) {
    confirming->time += passed;
    moved = MoveOn(Confirming(*confirming));
  }
  if (!moved.ok()) Fail(moved.error());
  return done_ ? TimePoint::max() : NextPoll();
}

void PowerLimitOptimizer::PassTime(Seconds time) {
  if (auto* warmup = std::get_if<Warmup>(&state_)) warmup->time += time;
  if (auto* profiling = std::get_if<Profiling>(&state_)) profiling->time += time;
  if (auto* confirming = std::get_if<Confirming>(&state_)) confirming->time += time;
}

TimePoint PowerLimitOptimizer::NextPoll() const {
  const TimePoint now = parts_.clock.Now();
  if (std::holds_alternative<Confirming>(state_)) return now + kObservePeriod;
  const auto* profiling = std::get_if<Profiling>(&state_);
  const TimePoint next_look = profiling != nullptr && profiling->measuring
                                  ? next_setting_check_
                                  : now + kSettingCheckInterval;
  if (!observed()) return next_look;
  const SliceRule& rule = options_.rule;
  if (const auto* warmup = std::get_if<Warmup>(&state_))
    return now + std::max(rule.warmup.time.value_or(Seconds(0)) - warmup->time, Seconds(0));
  if (profiling == nullptr) return now + kObservePeriod;
  Seconds left = rule.profile.time.value_or(Seconds(0)) - profiling->time;
  if (rule.enough_precision > 0) left = std::min(left, next_check_time_ - profiling->time);
  return std::min<TimePoint>(next_look, now + std::max(left, Seconds(0)));
}

void PowerLimitOptimizer::DropStep() {
  auto* profiling = std::get_if<Profiling>(&state_);
  if (profiling == nullptr) return;
  parts_.meter.Cancel();
  stepping_ = false;
  builder_.record(profiling->current).StartOver();
  *profiling = Profiling{.current = profiling->current};
}

void PowerLimitOptimizer::Stop() {
  if (done_) return;
  parts_.meter.Cancel();
  if (const auto* profiling = std::get_if<Profiling>(&state_))
    builder_.record(profiling->current).StartOver();
  const auto updated = UpdateBuilder();
  if (std::holds_alternative<Confirming>(state_) && builder_.HasAll()) builder_.Complete();
  if (!updated.ok()) return Fail(updated.error());
  in_force_.reset();
  state_ = Done{};
  done_ = true;
  if (Status restored = parts_.knob.Restore(); !restored.ok()) trouble_ = restored.error();
}

Status PowerLimitOptimizer::UpdateProfile() {
  if (done_) return Ok();
  const auto* profiling = std::get_if<Profiling>(&state_);
  const auto updated =
      observed() ? UpdateBuilder()
                 : builder_.Update(
                       parts_.meter, ranks_,
                       profiling != nullptr ? std::optional(profiling->current) : std::nullopt);
  return updated.ok() ? Ok() : Status(updated.error());
}

// --- slices ---

Status PowerLimitOptimizer::BeginSlice(std::size_t setting) {
  disturbed_.reset();
  CheckWhetherInForce(setting);
  ZEUS_RETURN_IF_ERROR(ranks_.Together(parts_.meter.Begin(ToText(builder_.setting(setting)))));
  slice_begin_ = parts_.clock.Now();
  std::get<Profiling>(state_).measuring = true;
  return Ok();
}

Status PowerLimitOptimizer::EndSlice() {
  auto& profiling = std::get<Profiling>(state_);
  profiling.measuring = false;
  const auto ticket = parts_.meter.End();
  if (ticket.ok()) {
    builder_.record(profiling.current)
        .AddSlice({.ticket = ticket.value(),
                   .number = slices_++,
                   .round = round_,
                   .begin = slice_begin_,
                   .end = parts_.clock.Now()});
  }
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

bool PowerLimitOptimizer::PrecisionIsDue(const Profiling& profiling) {
  if (!profiling.measuring || !(options_.rule.enough_precision > 0)) return false;
  if (observed()) {
    if (profiling.time < next_check_time_) return false;
    next_check_time_ = kCheckGrowth * profiling.time;
    return true;
  }
  if (profiling.steps < next_check_) return false;
  next_check_ = profiling.steps + std::max<std::int64_t>(profiling.steps / 2, 1);
  return true;
}

Result<bool> PowerLimitOptimizer::ObservedPreciselyEnough() {
  const auto rate = parts_.steps->Between(slice_begin_, parts_.clock.Now());
  if (!rate || rate->intervals < kFirstCheck) return false;
  const auto peek = parts_.meter.Peek();
  if (!peek.ok() || !(peek.value().energy > Joules(0))) return false;
  const double time_error = rate->sigma / rate->time_per_step;
  const double energy_error = peek.value().sigma / peek.value().energy;
  return std::max(time_error, energy_error) <= options_.rule.enough_precision;
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
  const bool measured = std::ranges::any_of(
      order_, [this](std::size_t i) { return !builder_.record(i).slices().empty(); });
  if (profile().points.empty() && !measured && !left_out_.empty())
    return Error{ErrorCode::kUnavailable,
                 "no setting could be measured: " + left_out_.front().reason};
  if (options_.mode == OptimizerMode::kMeasure) {
    in_force_.reset();
    return ranks_.Together(parts_.knob.Restore());
  }
  if (observed() && profile().points.empty())
    return Error{ErrorCode::kUnavailable, "the job made no steps while settings were tried"};
  ZEUS_TRY(best_, SelectTogether(profile()));
  if (options_.mode == OptimizerMode::kObserve) {
    in_force_.reset();
    return ranks_.Together(parts_.knob.Restore());
  }
  return SetBest();
}

// A cap from outside that came during the search may forbid the best setting. Then the best of
// those below it is chosen.
Status PowerLimitOptimizer::SetBest() {
  Profile allowed = profile();
  std::optional<Error> first_refusal;
  for (;;) {
    if (in_force_ == best_) return Ok();
    in_force_ = best_;
    const Setting chosen = builder_.setting(*best_);
    Status set = ranks_.Together(parts_.knob.Set(chosen));
    if (set.ok() || set.error().code != ErrorCode::kConflict) return set;
    if (!first_refusal) first_refusal = set.error();
    std::erase_if(allowed.points,
                  [&](const ProfilePoint& point) { return point.setting >= chosen; });
    if (allowed.points.empty()) return *first_refusal;
    ZEUS_TRY(best_, SelectTogether(allowed));
  }
}

// The function may be the user's.
Result<std::size_t> PowerLimitOptimizer::Selected(const Profile& from) const {
  try {
    return options_.selector.select(from);
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInvalidArgument, exception.what()};
  }
}

// The first rank's choice, so that no selector of the user can tear the job apart.
Result<std::size_t> PowerLimitOptimizer::SelectTogether(const Profile& from) {
  const auto selected = Selected(from);
  const bool valid = selected.ok() && selected.value() < from.points.size();
  Status outcome = Ok();
  if (!selected.ok())
    outcome = selected.error().While("choose by " + options_.selector.name);
  else if (!valid)
    outcome = Error{ErrorCode::kInvalidArgument,
                    options_.selector.name + " chose a setting that is not in the profile"};
  ZEUS_RETURN_IF_ERROR(ranks_.Together(std::move(outcome)));
  ZEUS_TRY(const std::vector<double> chosen,
           ranks_.FromLeader({static_cast<double>(selected.value())}));
  return *builder_.Find(from.points[static_cast<std::size_t>(chosen.front())].setting);
}

void PowerLimitOptimizer::Finish() {
  if (builder_.HasAll()) builder_.Complete();
  state_ = Done{};
  done_ = true;
}

void PowerLimitOptimizer::Fail(const Error& error) {
  trouble_ = error;
  if (options_.log) log::Warning("the job goes on but is not optimised: {}", error.message);
  parts_.meter.Cancel();
  if (const Status restored = parts_.knob.Restore(); !restored.ok())
    LogFailedRestore(restored.error());
  in_force_.reset();
  best_.reset();
  state_ = Done{};
  done_ = true;
}

// --- what it found ---

std::vector<Setting> PowerLimitOptimizer::settings() const {
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < builder_.size(); ++i) settings.push_back(builder_.setting(i));
  return settings;
}

std::vector<PowerLimitOptimizer::MeasuredSlice> PowerLimitOptimizer::Slices() const {
  std::vector<std::pair<std::size_t, MeasuredSlice>> numbered;
  for (std::size_t i = 0; i < builder_.size(); ++i)
    for (const SettingRecord::Slice& slice : builder_.record(i).slices())
      numbered.emplace_back(slice.number, MeasuredSlice{i, slice.round, slice.reading, slice.rate});
  std::ranges::sort(numbered, {}, [](const auto& slice) { return slice.first; });
  std::vector<MeasuredSlice> slices;
  for (const auto& [number, slice] : numbered) slices.push_back(slice);
  return slices;
}

std::optional<std::size_t> PowerLimitOptimizer::original() const {
  return original_ ? builder_.FindPosition(*original_) : std::nullopt;
}

std::optional<std::size_t> PowerLimitOptimizer::best() const {
  return best_ && done_ ? builder_.FindPosition(*best_) : std::nullopt;
}

std::optional<Setting> PowerLimitOptimizer::trying() const {
  if (const auto* warmup = std::get_if<Warmup>(&state_)) return builder_.setting(warmup->current);
  if (const auto* profiling = std::get_if<Profiling>(&state_))
    return builder_.setting(profiling->current);
  return std::nullopt;
}

std::vector<std::int64_t> PowerLimitOptimizer::StepsAtPoints() const {
  std::vector<std::int64_t> at_points(profile().points.size());
  const auto count = [&](std::size_t setting, std::int64_t steps) {
    if (const auto position = builder_.FindPosition(setting)) at_points[*position] += steps;
  };
  for (std::size_t i = 0; i < steps_at_.size(); ++i) count(i, steps_at_[i]);
  const auto before = std::accumulate(steps_at_.begin(), steps_at_.end(), std::int64_t{0});
  if (const auto setting = SettingInForce()) count(*setting, steps_ - before);
  return at_points;
}

void PowerLimitOptimizer::Conclude() {
  if (done_) return;
  CompleteStep();
  const auto* profiling = std::get_if<Profiling>(&state_);
  Status taken = profiling != nullptr && profiling->measuring ? EndSlice() : Ok();
  if (const auto updated = builder_.Update(parts_.meter, ranks_); taken.ok() && !updated.ok())
    taken = updated.error();
  if (!taken.ok()) Fail(taken.error());
}

Status PowerLimitOptimizer::Resume() {
  if (!in_force_) return Ok();
  return ranks_.Together(parts_.knob.Set(builder_.setting(*in_force_)));
}

}  // namespace zeus
