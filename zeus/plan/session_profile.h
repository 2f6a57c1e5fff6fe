#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/profile.h"
#include "zeus/plan/session_repository.h"

namespace zeus {

// The measurements of a rank. Points without a clock were measured at the clock that the rank was
// given.
struct RankReport {
  struct Point {
    std::string instruction{};
    std::optional<Hertz> clock{};
    Seconds time{0};
    Joules energy{};
    int times_in_iteration = 0;  // How often it ran in each iteration; 0: not reported.
  };
  int rank = 0;
  std::vector<Point> points{};
};

// Drops instructions that the rank's stage does not run. `runs` maps each instruction of the stage
// to how often it runs in an iteration. Returns kInvalidArgument when one of them is missing, or
// ran another number of times.
Status KeepInstructions(const std::map<std::string, int>& runs, RankReport& report);

// Returns SessionMeasurement::points of a report. `given` is the clock of points without one; if
// there is none either, returns kConflict.
Result<std::string> PointLines(const RankReport& report, std::optional<Hertz> given);

// Whether the points contain an instruction at several clocks, so that no more rounds are needed.
bool IsWholeProfile(std::string_view points);

// Makes the profile of the pipeline from the measurements of all its ranks, without blocking power.
// Returns kInvalidArgument when the ranks measured different things.
Result<pipeline::PipelineProfile> ProfileFrom(const std::vector<SessionRank>& ranks,
                                              const std::vector<SessionMeasurement>& measurements);

}  // namespace zeus
