#pragma once

#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/job/grouped_savings.h"

// How savings of many jobs are shown: each of these has a row per group, and the sum.
namespace zeus::cli {

std::string SavingsTable(const GroupedSavings& savings, const SavingsGrouping& grouping);
std::string SavingsCsv(const GroupedSavings& savings, const SavingsGrouping& grouping);
Json SavingsJson(const GroupedSavings& savings, const SavingsGrouping& grouping);

}  // namespace zeus::cli
