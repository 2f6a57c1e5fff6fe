#pragma once

#include <span>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// When each computation may begin at the earliest and must end at the latest for an iteration to
// meet its deadline; kept up to date while computations are made slower. One owner. The problem
// must outlive it.
class SlackTable {
 public:
  explicit SlackTable(const Problem& problem);

  void Reset(std::span<const Seconds> durations, Seconds deadline);

  // By how much a computation alone may become slower.
  Seconds Slack(int computation) const {
    const auto at = static_cast<std::size_t>(computation);
    return latest_end_[at] - earliest_start_[at] - durations_[at];
  }
  // By no more than its slack.
  void Lengthen(int computation, Seconds by);

  Seconds makespan() const { return makespan_; }

 private:
  void DelaySuccessors(int computation);
  void HurryPredecessors(int computation);

  const Problem& problem_;
  std::vector<int> rank_;  // In topological order.
  std::vector<Seconds> durations_{};
  std::vector<Seconds> earliest_start_{};
  std::vector<Seconds> latest_end_{};
  Seconds makespan_{0};
  std::vector<int> queue_{};    // A heap by rank; empty between calls.
  std::vector<bool> queued_{};  // Likewise.
};

}  // namespace zeus::pipeline
