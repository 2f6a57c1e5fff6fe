#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/plan/session_repository.h"

namespace zeus {

// What a client says about its pipeline in words like "microbatches=8" of its metadata, between
// blanks, commas or semicolons. Other words are for people.
struct SessionSettings {
  std::string plan{};  // Run at the clocks of this plan.
  std::string schedule = "1f1b";
  int microbatches = 0;  // 0: not said.
  double slowdown = 1.0;
  Watts blocking_power{70};  // Of a GPU; the reference's default.
};

// kInvalidArgument, for the field job_metadata, when a word that is ours makes no sense.
Result<SessionSettings> SettingsFrom(std::string_view metadata);

// The clocks at which a session measures, the highest first: at most eight that all ranks have,
// spread evenly down to two fifths of the highest. Slower ones save nothing on GPUs.
std::vector<int> ClocksToMeasure(const std::vector<SessionRank>& ranks);

}  // namespace zeus
