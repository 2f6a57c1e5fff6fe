#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/carbon/accounting.h"

namespace zeus::cli {

// Emissions and cost of some energy, as far as they were wanted.
struct CarbonReport {
  std::optional<Emissions> emissions;
  std::optional<Cost> cost;
  std::vector<std::string> notes;  // Of both.
};

// For people: "carbon: 12.3 ± 1.3 g CO2e (mean of Germany in 2024 (Ember))", one line for each
// and one for each note.
std::vector<std::string> ToLines(const CarbonReport& report);

// For programs: the fields "carbon" and "cost" of docs/formats.md, where they were wanted.
void AddTo(Json& object, const CarbonReport& report);

}  // namespace zeus::cli
