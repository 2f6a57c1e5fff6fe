#pragma once

#include "apps/zeus/command_line.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/monitor/measurement.h"

// The options for carbon and price of every verb that reports energy.
namespace zeus::cli {

// Declares --carbon, --price and the options that belong to them.
void AddCarbonOptions(Verb app, CarbonOptions& options);

// Returns the emissions and the cost of a window, whose energy is spread evenly over it.
CarbonReport ReportCarbon(const CarbonAccounting& accounting, const Measurement& measurement);

}  // namespace zeus::cli
