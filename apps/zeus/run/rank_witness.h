#pragma once

#include <memory>
#include <optional>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/run/report.h"
#include "apps/zeus/run/run_meter.h"
#include "apps/zeus/run/run_options.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/ranks/line_connection.h"
#include "zeus/ranks/rank_meeting.h"

namespace zeus::cli {

// The process beside a rank that measures its node and meets the other ranks, see RunAsRank(). It
// says {"ready"} when it measures, hears {"ended"} with the exit code of the command, and says
// {"done"} when all have ended and the report is written. The end of the connection is the death of
// the rank. One owner.
class RankWitness {
 public:
  RankWitness(const RunOptions& options, LineConnection& rank) : options_(options), rank_(rank) {}

  // Errors are those of the devices and of the carbon source, before anything is measured.
  Status Run();

 private:
  RankShare Here(const RunMeter& meter) const;
  std::optional<int> AwaitCommand();
  Status Report(RankMeeting& meeting, const RunMeter& meter, const CarbonAccounting& carbon) const;

  const RunOptions& options_;
  LineConnection& rank_;
};

}  // namespace zeus::cli
