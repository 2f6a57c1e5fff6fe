#pragma once

#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/deadline/deadline_network.h"

namespace zeus::pipeline::internal {

// Proves by weak duality, in exact integers and from nothing but times and flows, that no durations
// within the deadline cost less: the times keep every wait and the deadline, the flow is a
// circulation, and the cost of the times equals the bound that the flow gives for all others.
bool IsOptimal(const DeadlineNetwork& network, const CostTable& costs, Ticks deadline);

}  // namespace zeus::pipeline::internal
