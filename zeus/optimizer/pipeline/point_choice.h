#pragma once

#include <optional>
#include <span>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
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

// The points of a kind that are worth choosing: each slower one takes less effective energy.
struct EfficientPoint {
  int index = 0;  // Into ComputationKind::points.
  Seconds time{0};
  Joules effective{};
};
using EfficientPoints = std::vector<EfficientPoint>;  // Fastest first.

std::vector<EfficientPoints> EfficientPointsOf(const Problem& problem);

// A measured point for each computation, found from durations that no point need have: rounded
// down, then made slower where there is slack left, then improved by exchanges. One owner. The
// problem must outlive it.
class PointChooser {
 public:
  // `pace`: iterations last that long whatever is chosen. Without one a longer iteration costs
  // blocking power.
  PointChooser(const Problem& problem, std::optional<Seconds> pace);

  // Which point each computation runs at; within the deadline if the rounded durations are, which
  // is up to the caller to check.
  std::vector<int> Choose(std::span<const Ticks> durations, Seconds tick, Seconds deadline);

 private:
  using Levels = std::vector<int>;  // Of each computation: into its EfficientPoints.

  const EfficientPoints& PointsOf(int computation) const;
  Levels RoundDown(std::span<const Ticks> durations, Seconds tick) const;
  // Makes computations slower, those first that save most, as long as the deadline allows.
  void UseSlack(Levels& levels, Seconds deadline);
  // Makes one computation faster and uses the slack that this gives, wherever that saves energy.
  void Exchange(Levels& levels, Seconds deadline);
  // Of the iteration; a constant apart.
  Joules Energy(const Levels& levels);
  void Reset(const Levels& levels, Seconds deadline);

  const Problem& problem_;
  const std::optional<Seconds> pace_;
  const std::vector<EfficientPoints> points_;  // Of each kind.
  SlackTable slack_;
};

}  // namespace zeus::pipeline
