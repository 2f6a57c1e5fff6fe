#pragma once

#include "zeus/base/result.h"
#include "zeus/device/node.h"
#include "zeus/device/rapl/perf_power.h"

namespace zeus {

// The CPU packages of this machine and their memory. Per package and domain: the perf power PMU
// where it can be opened, else powercap. For what is not there, why, and the command that helps.
Result<Findings> DiscoverCpus(const Surroundings& surroundings);

namespace rapl {
// The same with other system calls.
Result<Findings> DiscoverWith(const PerfApi& api, const Surroundings& surroundings);
}  // namespace rapl

}  // namespace zeus
