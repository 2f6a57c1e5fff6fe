#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"

// What a PowerLimitOptimizer tries, and what it tells about it.
namespace zeus {
namespace {

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

bool HasUnitOf(KnobKind kind, const Setting& setting) {
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
  builder_ = ProfileBuilder(settings, std::move(known));
  steps_at_.assign(settings.size(), 0);
  original_ = builder_.Find(present.value());
  if (builder_.NextUnknown(0)) return Ok();
  ZEUS_RETURN_IF_ERROR(Decide());
  Finish();
  return Ok();
}

// What the job began with is one of the settings to compare: it must be one.
Status PowerLimitOptimizer::CheckAlike(const Setting& present) {
  const double number = ToNumber(present);
  std::vector<double> extremes{number, -number};
  ZEUS_RETURN_IF_ERROR(ranks_.Max(extremes));
  if (extremes[0] == -extremes[1]) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the {} of this rank is {}, that of others is not: set the same on all",
                           parts_.knob.name(), ToText(present))};
}

// Whoever found a profile may be the only one: files are not everywhere the same.
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
    if (!HasUnitOf(kind, setting) || !(ToNumber(setting) > 0) || std::isinf(ToNumber(setting)))
      return Error{ErrorCode::kInvalidArgument,
                   ToText(setting) + " is no setting of the " + parts_.knob.name()};
  const Setting stride = options_.stride.value_or(DefaultStride(kind));
  if (!HasUnitOf(kind, stride) || !(ToNumber(stride) > 0))
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
  settings.push_back(present);
  SortFastestFirst(settings);
  return settings;
}

std::optional<std::size_t> PowerLimitOptimizer::original() const {
  return original_ ? builder_.PositionOf(*original_) : std::nullopt;
}

std::optional<std::size_t> PowerLimitOptimizer::best() const {
  return best_ && done_ ? builder_.PositionOf(*best_) : std::nullopt;
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
    if (const auto position = builder_.PositionOf(setting)) at_points[*position] += steps;
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
