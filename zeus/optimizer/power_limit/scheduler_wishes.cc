#include "zeus/optimizer/power_limit/scheduler_wishes.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr double kMostSlowdown = 1000;

}  // namespace

Result<SchedulerWishes> ReadSchedulerWishes(const Environment& environment) {
  SchedulerWishes wishes;
  wishes.optimize = environment("ZEUS_MODE").value_or("") == "optimize";
  const std::string slowdown = environment("ZEUS_MAX_SLOWDOWN").value_or("");
  if (slowdown.empty()) return wishes;
  const auto factor = ParseDouble(slowdown);
  if (!factor.ok() || !(factor.value() >= 1 && factor.value() <= kMostSlowdown))
    return InvalidArgument(
        fmt::format("ZEUS_MAX_SLOWDOWN is {}: it must be a factor from 1 to {:g}, as in 1.05",
                    Quote(slowdown), kMostSlowdown));
  wishes.max_slowdown = factor.value();
  return wishes;
}

Selector Within(const SchedulerWishes& wishes, Selector objective) {
  if (!wishes.max_slowdown) return objective;
  return WithinSlowdown(std::move(objective), *wishes.max_slowdown);
}

}  // namespace zeus
