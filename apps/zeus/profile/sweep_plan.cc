#include "apps/zeus/profile/sweep_plan.h"

namespace zeus::cli {

std::optional<SweepPlan::Position> SweepPlan::At(std::size_t slice_number) const {
  if (settings == 0) return std::nullopt;
  const auto round = static_cast<unsigned>(slice_number / settings);
  if (rounds && round >= *rounds) return std::nullopt;
  const std::size_t along = slice_number % settings;
  return Position{round, round % 2 == 0 ? along : settings - 1 - along};
}

}  // namespace zeus::cli
