#include "zeus/optimizer/power_limit/savings.h"

#include <cmath>

namespace zeus {

JobUse UseAtPoint(const JobUse& used, const Profile& profile, std::span<const std::int64_t> steps,
                  std::size_t point) {
  const ProfilePoint& there = profile.points[point];
  JobUse result{.time = used.time, .energy = used.energy};
  double time_variance = 0;
  double energy_variance = 0;
  double moved = 0;
  for (std::size_t i = 0; i < profile.points.size(); ++i) {
    if (i == point) continue;
    const ProfilePoint& here = profile.points[i];
    const auto count = static_cast<double>(steps[i]);
    result.time += count * (there.time_per_step - here.time_per_step);
    result.energy += count * (there.energy_per_step - here.energy_per_step);
    time_variance += std::pow(count * here.time_sigma.count(), 2);
    energy_variance += std::pow(count * here.energy_sigma.value(), 2);
    moved += count;
  }
  time_variance += std::pow(moved * there.time_sigma.count(), 2);
  energy_variance += std::pow(moved * there.energy_sigma.value(), 2);
  // The error of the sensors' gain is relative, so it scales with the estimated energy.
  const double scale = used.energy > Joules(0) ? result.energy / used.energy : 1.0;
  result.time_sigma = Seconds(std::hypot(used.time_sigma.count(), std::sqrt(time_variance)));
  result.energy_sigma =
      Joules(std::hypot(scale * used.energy_sigma.value(), std::sqrt(energy_variance)));
  return result;
}

JobUse ChangeBetween(const Profile& profile, std::int64_t steps, std::size_t from, std::size_t to) {
  const ProfilePoint& a = profile.points[from];
  const ProfilePoint& b = profile.points[to];
  if (from == to) return {};
  const auto count = static_cast<double>(steps);
  return {
      .time = count * (b.time_per_step - a.time_per_step),
      .time_sigma = Seconds(count * std::hypot(a.time_sigma.count(), b.time_sigma.count())),
      .energy = count * (b.energy_per_step - a.energy_per_step),
      .energy_sigma = Joules(count * std::hypot(a.energy_sigma.value(), b.energy_sigma.value()))};
}

}  // namespace zeus
