#pragma once

#include <optional>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::cli {

// What a command says about an epoch that it completed. What it says about time and energy counts
// instead of what was measured: it may know better.
struct EpochReport {
  double metric = 0;
  std::optional<int> epoch{};     // From 1; nullopt: the next one.
  std::optional<Seconds> time{};  // Since the start, as is the next.
  std::optional<Joules> energy{};
  std::optional<Watts> power_limit{};
  std::optional<Seconds> epoch_time{};  // Of one epoch as they will be from now on.
  std::optional<Joules> epoch_energy{};
};

// {"metric": 0.93, "epoch": 3, "time_seconds": 12.5, "energy_joules": 2100, "power_limit_watts":
// 175, "epoch_time_seconds": 4.1, "epoch_energy_joules": 700}: only the metric is needed, which may
// also be null, as JSON has it for not a number. kInvalidArgument names the field. Unknown fields
// are the program's own.
Result<EpochReport> ParseEpochReport(std::string_view line);

}  // namespace zeus::cli
