#include "zeus/optimizer/power_limit/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace zeus {
namespace {

// 95 % of a normal distribution lies below this many standard deviations.
constexpr double kOneSided95 = 1.645;

struct Value {
  double value;
  double sigma;
};

bool SignificantlyWorse(const Value& one, const Value& other) {
  return one.value - other.value > kOneSided95 * std::hypot(one.sigma, other.sigma);
}

Result<std::size_t> FastestOfTheBest(const Profile& profile,
                                     const std::function<Value(const ProfilePoint&)>& value) {
  if (profile.points.empty())
    return Error{ErrorCode::kUnavailable, "no setting has been measured yet"};
  std::vector<Value> values;
  for (const ProfilePoint& point : profile.points) values.push_back(value(point));
  const Value& best = *std::ranges::min_element(values, {}, &Value::value);
  const auto chosen = std::ranges::find_if(
      values, [&](const Value& one) { return !SignificantlyWorse(one, best); });
  return static_cast<std::size_t>(chosen - values.begin());
}

Selector Minimum(std::string name, std::function<Value(const ProfilePoint&)> value) {
  return {.name = std::move(name), .select = [value = std::move(value)](const Profile& profile) {
            return FastestOfTheBest(profile, value);
          }};
}

Selector Impossible(std::string name, std::string why) {
  return {.name = std::move(name), .select = [why = std::move(why)](const Profile&) {
            return Result<std::size_t>(Error{ErrorCode::kInvalidArgument, why});
          }};
}

Result<std::size_t> SlowestWithin(const Profile& profile, double factor) {
  if (profile.points.empty())
    return Error{ErrorCode::kUnavailable, "no setting has been measured yet"};
  const ProfilePoint& fastest = profile.points.front();
  const double bound = factor * fastest.time_per_step.count();
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < profile.points.size(); ++i) {
    const ProfilePoint& point = profile.points[i];
    const double doubt =
        kOneSided95 * std::hypot(point.time_sigma.count(), factor * fastest.time_sigma.count());
    if (point.time_per_step.count() + doubt <= bound) chosen = i;
  }
  return chosen;
}

}  // namespace

WeighedCost StepCost(const ProfilePoint& point, Watts max_power, double eta) {
  const Joules time_cost = max_power * point.time_per_step;
  const Joules time_sigma = max_power * point.time_sigma;
  return {.cost = eta * point.energy_per_step + (1 - eta) * time_cost,
          .sigma =
              Joules(std::hypot(eta * point.energy_sigma.value(), (1 - eta) * time_sigma.value()))};
}

Selector Energy() {
  return Minimum("energy", [](const ProfilePoint& point) {
    return Value{point.energy_per_step.value(), point.energy_sigma.value()};
  });
}

Selector Time() {
  return Minimum("time", [](const ProfilePoint& point) {
    return Value{point.time_per_step.count(), point.time_sigma.count()};
  });
}

Selector ZeusCost(double eta) {
  std::string name = fmt::format("cost (eta {:g})", eta);
  if (!(eta >= 0 && eta <= 1))
    return Impossible(std::move(name), fmt::format("eta must lie between 0 and 1, not {:g}", eta));
  return {.name = std::move(name), .select = [eta](const Profile& profile) {
            return FastestOfTheBest(profile, [&](const ProfilePoint& point) {
              const WeighedCost cost = StepCost(point, profile.max_power, eta);
              return Value{cost.cost.value(), cost.sigma.value()};
            });
          }};
}

Selector MaxSlowdownConstraint(double factor) {
  std::string name = fmt::format("at most {:g} times as long", factor);
  if (!(factor >= 1 && std::isfinite(factor)))
    return Impossible(std::move(name),
                      fmt::format("the factor of a slowdown must be 1 or more, not {:g}", factor));
  return {.name = std::move(name),
          .select = [factor](const Profile& profile) { return SlowestWithin(profile, factor); }};
}

Selector WithinSlowdown(Selector objective, double factor) {
  Selector bound = MaxSlowdownConstraint(factor);
  std::string name = fmt::format("{}, {}", objective.name, bound.name);
  return {.name = std::move(name),
          .select = [objective = std::move(objective),
                     bound = std::move(bound)](const Profile& profile) -> Result<std::size_t> {
            ZEUS_TRY(const std::size_t wanted, objective.select(profile));
            ZEUS_TRY(const std::size_t slowest, bound.select(profile));
            const auto& points = profile.points;
            const bool within =
                wanted < points.size() &&
                (wanted == slowest || points[wanted].time_per_step < points[slowest].time_per_step);
            return within ? wanted : slowest;
          }};
}

}  // namespace zeus
