#pragma once

#include <map>
#include <string>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/fleet/fleet_table.h"

// Answers of servers as reports. They come from outside, and may be wrong in any way.
namespace zeus::fleet {

// The best known power limit by model of the GPU, as a profile or an operator found it.
using BestLimits = std::map<std::string, Watts>;
// "NVIDIA A100-SXM4-40GB=250": kInvalidArgument otherwise.
Status AddBestLimit(std::string_view text, BestLimits& limits);

// A node from its /v1/node and its /v1/history with steps of ten seconds.
Result<NodeReport> ReportOf(const Json& node, const Json& history, const BestLimits& best);
// Where the next history is to begin, so that only what is new is sent.
double NextSince(const Json& history);

// The values of a Prometheus answer by their label "instance".
Result<std::map<std::string, double>> ByInstance(const Json& answer);

}  // namespace zeus::fleet
