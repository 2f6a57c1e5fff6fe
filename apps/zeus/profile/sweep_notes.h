#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/profile/sweep_report.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::cli {

// How a sweep came to its end.
struct SweepEnd {
  bool command_ended = false;
  bool interrupted = false;
  Seconds ran{0};           // The command, until then.
  Seconds before_sweep{0};  // The command, until it showed progress.
  bool waiting = false;     // It never did.
  std::optional<Error> trouble{};
  std::vector<SkippedSlice> skipped{};
};

// What went otherwise than planned and what to do about it, a sentence each.
std::vector<std::string> NotesOn(const SweepReport& report, const SweepEnd& end);

}  // namespace zeus::cli
