#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "zeus/optimizer/batch_size/epoch_cost_table.h"

namespace zeus {

// What is believed about the cost of one epoch, as a logarithm (of joules).
struct EpochCostBelief {
  double log_cost = 0.0;
  double sigma = 0.0;
  bool profiled = false;  // Measured on this GPU model, and so exact.
};

// One per batch size (ascending): as measured on this GPU model, else translated from another one,
// else by the curve A / b + C that work per step and work per sample make. nullopt while nothing
// was measured anywhere.
std::vector<std::optional<EpochCostBelief>> BelieveEpochCosts(const EpochCostTable& table,
                                                              std::string_view gpu_model,
                                                              std::span<const int> batch_sizes);

}  // namespace zeus
