#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/carbon/accounting.h"

namespace zeus::cli {

// Emissions and cost of some energy; each is unset unless the user asked for it.
struct CarbonReport {
  std::optional<Emissions> emissions;
  std::optional<Cost> cost;
  std::vector<std::string> notes;  // Notes on both emissions and cost.
};

// Returns lines for people, "carbon: 12.3 g CO2e ± 1.3 g (mean of Germany in 2024 (Ember))": one
// for emissions, one for cost, one for each note.
std::vector<std::string> ToLines(const CarbonReport& report);

// Adds the fields "carbon" and "cost" of docs/formats.md, if they were asked for.
void AddTo(Json& object, const CarbonReport& report);

}  // namespace zeus::cli
