#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// The power limit of a run, as an index into ReplayArm::limits.
struct LimitChoice {
  std::size_t limit = 0;
  // The first epoch of the run is spent at all limits in turn (Zeus §4.2).
  bool profiles = false;
};

// A strategy of a contender for finding the power limit of each batch size. Not thread-safe.
class LimitSearch {
 public:
  virtual ~LimitSearch() = default;

  // Returns the limit for the next run with this batch size.
  virtual LimitChoice Next(std::size_t arm_index, const ReplayArm& arm) const = 0;
  // Must be called when that run was begun.
  virtual void Begun(std::size_t arm_index) = 0;
  // Forgets everything: the job moved to another GPU model, with `arms` batch sizes.
  virtual void StartOver(std::size_t arms) = 0;
};

// Always the greatest limit, as without Zeus.
std::unique_ptr<LimitSearch> AtGreatestLimit();
// Always the best limit, known beforehand.
std::unique_ptr<LimitSearch> AtBestLimit();
// The best limit, found during the first epoch of the first run with a batch size (Zeus §4.2).
std::unique_ptr<LimitSearch> JustInTime(std::size_t arms);
// A whole run at each limit, from the greatest down, then the best one (Zeus §6.7: without
// just-in-time profiling).
std::unique_ptr<LimitSearch> OneLimitPerRun(std::size_t arms);

}  // namespace zeus::replay
