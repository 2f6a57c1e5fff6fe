#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

// A recurring job keeps an event for every epoch of every run. The policy, savings and `zeus job
// check` need none of them but for the last of each run, so those of runs that ended long ago can
// be removed. Jobs, trials, all other events and beliefs stay.
namespace zeus {

enum class PruneMode { kDryRun, kRemove };

struct PrunedJob {
  std::string job{};
  std::int64_t trials = 0;  // Runs that have events to remove.
  std::int64_t events = 0;  // Events that are removed.
};

// Removes the reports of epochs, but for the last, of all runs of a database that ended before this
// time, or only counts them. The last report says how many are gone, so that a missing event is
// still noticed. Runs that may go on are left alone. Each job is one transaction, so others may use
// the database meanwhile.
Result<std::vector<PrunedJob>> PruneEpochs(const std::string& url, WallTime before, PruneMode mode);

}  // namespace zeus
