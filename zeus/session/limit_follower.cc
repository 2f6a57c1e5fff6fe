#include "zeus/session/limit_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "zeus/base/quantity_text.h"

namespace zeus {
namespace {

constexpr Seconds kUnknownDuration = std::chrono::hours(24);
// A run that takes longer than it was believed to is planned for so long at least.
constexpr Seconds kShortestRest = std::chrono::minutes(10);

}  // namespace

std::optional<Watts> LimitFollower::LimitNow(const Profile& profile, std::size_t best, double eta) {
  points_.clear();
  for (std::size_t i = 0; i < profile.points.size(); ++i) {
    const ProfilePoint& point = profile.points[i];
    const auto* limit = std::get_if<Watts>(&point.setting);
    if (limit == nullptr || !(point.time_per_step > Seconds(0)) ||
        !(point.energy_per_step > Joules(0)))
      continue;
    points_.push_back(
        {.limit = *limit, .rate = 1 / point.time_per_step.count(), .power = point.average_power()});
    if (i == best) best_ = points_.back();
  }
  if (points_.size() < 2 || !(best_.rate > 0)) return std::nullopt;
  const WallTime now = parts_.clock.WallNow();
  const Seconds duration =
      wish_.duration.value_or(estimate_ ? estimate_->duration.mean() : kUnknownDuration);
  const Seconds left = std::max(duration - Seconds(now - begun_), kShortestRest);
  const auto forecast = parts_.forecasts.ForecastFor(wish_.goal, now, Later(now, 2 * left));
  if (!forecast.ok()) return best_.limit;
  FollowRequest request{.now = now,
                        .profile = points_,
                        .work = left.count() * best_.rate,
                        .eta = eta,
                        .max_power = profile.max_power};
  if (wish_.finish_by)
    request.finish_by =
        *wish_.finish_by - std::chrono::duration_cast<std::chrono::microseconds>(wish_.margin);
  const auto plan = PlanFollowing(forecast.value().signal, request);
  return plan.ok() ? plan.value().LimitAt(now) : best_.limit;
}

std::optional<LimitPoint> LimitFollower::PointAt(Watts limit) const {
  const auto found = std::ranges::find(points_, limit, &LimitPoint::limit);
  return found != points_.end() ? std::optional(*found) : std::nullopt;
}

void LimitFollower::Note(Joules energy, Watts limit) {
  const WallTime now = parts_.clock.WallNow();
  if (last_ && now > last_->time) {
    if (const auto point = PointAt(last_->limit)) {
      const Seconds length = now - last_->time;
      use_.pieces.push_back({.begin = last_->time,
                             .end = now,
                             .energy = std::max(energy - last_->energy, Joules(0))});
      work_ += point->rate * length.count();
      predicted_ += point->power * length;
    }
  }
  if (last_ && last_->limit != limit) ++changes_;
  last_ = Noted{.time = now, .energy = energy, .limit = limit};
}

std::optional<FollowReport> LimitFollower::Judge(const CarbonAccounting& actual) const {
  if (use_.pieces.empty() || !(work_ > 0) || !(predicted_ > Joules(0))) return std::nullopt;
  // The measured energy differs from that of the profile; the constant limit would differ alike.
  const double scale = use_.Sum() / predicted_;
  const Seconds constant_time(work_ / best_.rate);
  const WallTime first = use_.pieces.front().begin;
  const EnergyUse constant{.pieces = {{.begin = first,
                                       .end = Later(first, constant_time),
                                       .energy = scale * (best_.power * constant_time)}},
                           .sigma = Joules(0)};
  const ShiftReport followed = JudgeShift(actual, wish_.goal, first, use_);
  const ShiftReport steady = JudgeShift(actual, wish_.goal, first, constant);
  if (!followed.actual || !steady.actual) return std::nullopt;
  return FollowReport{.unit = actual.UnitOf(wish_.goal),
                      .actual = *followed.actual,
                      .constant = *steady.actual,
                      .constant_limit = best_.limit,
                      .time = use_.pieces.back().end - first,
                      .constant_time = constant_time,
                      .changes = changes_};
}

std::string ToSentence(const FollowReport& report) {
  return fmt::format(
      "the power limit changed {} times with the hour: {} instead of {} at {:g} W, {}, in "
      "{} time",
      report.changes, AmountText(report.actual, report.unit),
      AmountText(report.constant, report.unit), report.constant_limit.value(),
      ChangeText(report.actual.value, report.constant.value),
      ChangeText(report.time.count(), report.constant_time.count()));
}

}  // namespace zeus
