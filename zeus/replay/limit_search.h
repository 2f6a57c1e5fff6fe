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

// How a contender finds the power limit of each batch size. One owner.
class LimitSearch {
 public:
  virtual ~LimitSearch() = default;

  // Of the next run with this batch size.
  virtual LimitChoice Next(std::size_t arm_index, const ReplayArm& arm) const = 0;
  // That run was begun.
  virtual void Begun(std::size_t arm_index) = 0;
  // What was found out holds no more: another GPU model, with so many batch sizes.
  virtual void StartOver(std::size_t arms) = 0;
};

// The greatest limit, always: what happens without Zeus.
std::unique_ptr<LimitSearch> AtGreatestLimit();
// The best limit, known beforehand.
std::unique_ptr<LimitSearch> AtBestLimit();
// The best limit, found within the first epoch of the first run with a batch size (Zeus §4.2).
std::unique_ptr<LimitSearch> JustInTime(std::size_t arms);
// The best limit, after a whole run at each of them, from the greatest (Zeus §6.7, without
// just-in-time profiling).
std::unique_ptr<LimitSearch> OneLimitPerRun(std::size_t arms);

}  // namespace zeus::replay
