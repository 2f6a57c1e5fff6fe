#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/plan/session_repository.h"

namespace zeus {

// The settings of a pipeline, which a client gives in its metadata as words like "microbatches=8",
// separated by blanks, commas or semicolons. Other words are ignored.
struct SessionSettings {
  std::string plan{};  // Id of the plan whose clocks are used; empty: none.
  std::string schedule = "1f1b";
  int microbatches = 0;  // 0: not given.
  double slowdown = 1.0;
  Watts blocking_power{70};  // Power of one waiting GPU; the default is that of Perseus.
};

// Returns kInvalidArgument, for the field job_metadata, when a known word has no valid value.
Result<SessionSettings> SettingsFrom(std::string_view metadata);

// Returns the clocks at which a session measures, the highest first: at most eight that all ranks
// have, spread evenly down to two fifths of the highest. Lower clocks save no energy on GPUs.
std::vector<int> ClocksToMeasure(const std::vector<SessionRank>& ranks);

}  // namespace zeus
