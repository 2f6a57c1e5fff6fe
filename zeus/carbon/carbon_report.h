#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/carbon/accounting.h"

namespace zeus {

// Emissions and cost of some energy, as far as they were asked for.
struct CarbonReport {
  std::optional<Emissions> emissions;
  std::optional<Cost> cost;
  std::vector<std::string> notes;  // They concern both emissions and cost.
};

// Returns lines for people: "carbon: 12.3 g CO2e ± 1.3 g (mean of Germany in 2024 (Ember))", one
// for emissions, one for the cost and one for each note. Beside another cost, that of a job in
// joules, `cost_name` tells them apart.
std::vector<std::string> ToLines(const CarbonReport& report, const std::string& cost_name = "cost");

// Adds the fields "carbon" and "cost" of docs/formats.md, as far as they were asked for.
void AddTo(Json& object, const CarbonReport& report);
// Reads them back, each of which may be missing. All notes belong to one of the two afterwards.
Result<CarbonReport> CarbonReportFromJson(const Json& object);

}  // namespace zeus
