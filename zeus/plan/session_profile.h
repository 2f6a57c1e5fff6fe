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

// What a rank measured. Without clocks: at those of the schedule that it was given.
struct RankReport {
  struct Point {
    std::string instruction{};
    std::optional<Hertz> clock{};
    Seconds time{0};
    Joules energy{};
    int times_in_iteration = 0;  // How often it ran in each; 0: not said.
  };
  int rank = 0;
  std::vector<Point> points{};
};

// Leaves in it what the stage of the rank runs, how often being said by `runs`. kInvalidArgument
// when something of that is missing, or ran more or less often.
Status KeepInstructions(const std::map<std::string, int>& runs, RankReport& report);

// SessionMeasurement::points of a report. kConflict when a clock is missing and none was given.
Result<std::string> PointLines(const RankReport& report, std::optional<Hertz> given);

// Whether they know an instruction at several clocks: nothing is left to find out then.
bool IsWholeProfile(std::string_view points);

// Of the pipeline, from what all its ranks measured; without blocking power. kInvalidArgument when
// they measured different things.
Result<pipeline::PipelineProfile> ProfileFrom(const std::vector<SessionRank>& ranks,
                                              const std::vector<SessionMeasurement>& measurements);

}  // namespace zeus
