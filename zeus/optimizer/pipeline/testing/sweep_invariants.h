#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "zeus/optimizer/pipeline/frontier_sweep.h"

namespace zeus::pipeline {

// The bounds of the flow at a duration: see ActivityNetwork::SetBounds().
struct FlowBounds {
  Slope least = 0;
  Slope most = kUnlimited;
};

inline FlowBounds BoundsAt(const ConvexCost& cost, Ticks duration) {
  FlowBounds bounds;
  for (std::size_t k = 1; k < cost.times.size(); ++k) {
    if (cost.times[k] > duration && cost.times[k - 1] <= duration) bounds.least = cost.slopes[k];
    if (cost.times[k] >= duration && cost.times[k - 1] < duration) bounds.most = cost.slopes[k];
  }
  return bounds;
}

// Checks every condition that makes the present durations an optimum for the present time.
class SweepInvariants {
 public:
  explicit SweepInvariants(const FrontierSweep& sweep)
      : sweep_(sweep), network_(sweep.network()), balance_(network_.nodes.size(), 0) {}

  void Check() {
    for (int arc = 0; arc < static_cast<int>(network_.arcs.size()); ++arc) CheckArc(arc);
    EXPECT_EQ(NodeTime(network_.source()), 0);
    EXPECT_EQ(NodeTime(network_.sink()), sweep_.time());
    for (std::size_t node = 2; node < balance_.size(); ++node) EXPECT_EQ(balance_[node], 0);
    EXPECT_EQ(balance_[static_cast<std::size_t>(network_.sink())], sweep_.marginal_cost());
    EXPECT_NEAR(sweep_.cost(), paid_, 1e-9 * paid_);
  }

 private:
  Ticks NodeTime(int node) const {
    const NetworkNode& at = network_.node(node);
    return at.inside() ? at.anchor : at.anchor + sweep_.time();
  }

  void CheckArc(int number) {
    const NetworkArc& arc = network_.arc(number);
    Ticks duration = arc.duration;
    Slope flow = arc.residual[1];
    FlowBounds bounds;
    bool longest = true;
    if (network_.IsActivity(number)) {
      const Activity& activity = network_.activities[static_cast<std::size_t>(number)];
      if (activity.direction != 0)
        duration += activity.direction * (activity.since - sweep_.time());
      flow += activity.lower;
      bounds = BoundsAt(*activity.cost, duration);
      longest = duration == activity.cost->longest();
      EXPECT_GE(duration, activity.cost->shortest());
      EXPECT_LE(duration, activity.cost->longest());
      paid_ += activity.cost->SlopesAbove(duration);
    }
    const Ticks slack = NodeTime(arc.ends[1]) - NodeTime(arc.ends[0]) - duration;
    EXPECT_GE(slack, 0);
    if (slack > 0) {
      EXPECT_EQ(flow, 0);
      EXPECT_TRUE(longest);
    } else {
      EXPECT_GE(flow, bounds.least);
      EXPECT_LE(flow, bounds.most);
    }
    balance_[static_cast<std::size_t>(arc.ends[1])] += flow;
    balance_[static_cast<std::size_t>(arc.ends[0])] -= flow;
  }

  const FrontierSweep& sweep_;
  const ActivityNetwork& network_;
  std::vector<Slope> balance_;  // Inflow minus outflow of each node.
  double paid_ = 0;
};

}  // namespace zeus::pipeline
