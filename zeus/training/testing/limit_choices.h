#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "zeus/device/sim/workload.h"
#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/testing/simulated_node.h"

// Judges the power limits that are found during training: they are chosen by simulated sensors and
// compared by the true values of the simulation.
namespace zeus::testing {

// The GPU models of the paper.
inline constexpr std::array kRecordedGpuModels = {"V100", "A40", "RTX6000", "P100"};
inline constexpr std::array kEtas = {0.0, 0.25, 0.5, 0.75, 1.0};

// Returns the true cost of an epoch in the simulation, at the default batch size.
inline double EpochCost(const sim::GpuModel& model, const sim::Workload& workload, Watts limit,
                        double eta) {
  const auto point = sim::Predict(model, workload, workload.default_batch_size,
                                  {.power_limit = limit, .clock_cap = {}})
                         .value();
  return (eta * point.average_power.value() + (1 - eta) * model.limit_range.max.value()) *
         point.time_per_epoch.count();
}

inline double CheapestEpoch(const sim::GpuModel& model, const sim::Workload& workload, Watts stride,
                            double eta) {
  double cheapest = EpochCost(model, workload, model.limit_range.min, eta);
  for (Watts limit = model.limit_range.max; limit > model.limit_range.min; limit -= stride)
    cheapest = std::min(cheapest, EpochCost(model, workload, limit, eta));
  return cheapest;
}

// The excess cost of an epoch in percent, over the best of the limits that were tried and over the
// best of all whole watts.
struct ExcessCost {
  double of_tried = 0;
  double of_any = 0;
};

// The choices for all of kEtas, from one profile.
struct LimitChoices {
  std::vector<Watts> chosen;
  std::vector<ExcessCost> excess;
  Seconds profiling{0};
};

inline SimulatedNode::Job MakeJob(const sim::Workload& workload) {
  return {.workload = workload.name.data(), .batch_size = workload.default_batch_size};
}

inline LimitChoices ChooseLimits(const sim::GpuModel& model, const sim::Workload& workload) {
  SimulatedNode node({model.id.data()}, MakeJob(workload));
  GlobalPowerLimitOptimizer optimizer(node.monitor());
  const TimePoint begin = node.clock().Now();
  while (!optimizer.done()) {
    optimizer.OnStepBegin();
    node.Step();
  }
  const Profile& profile = optimizer.profile();
  LimitChoices row{.chosen = {}, .excess = {}, .profiling = node.clock().Now() - begin};
  for (const double eta : kEtas) {
    const std::size_t best = ZeusCost(eta).select(profile).value();
    const Watts limit = std::get<Watts>(profile.points[best].setting);
    const double cost = EpochCost(model, workload, limit, eta);
    row.chosen.push_back(limit);
    row.excess.push_back(
        {.of_tried = 100 * (cost / CheapestEpoch(model, workload, Watts(25), eta) - 1),
         .of_any = 100 * (cost / CheapestEpoch(model, workload, Watts(1), eta) - 1)});
  }
  return row;
}

}  // namespace zeus::testing
