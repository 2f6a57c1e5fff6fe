#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/replay/replay_job.h"

namespace zeus::replay::testing {

// Makes a job with two power limits, of which the lower one costs less, and batch sizes 8, 16 and
// 32. The default is 32, which costs the most. An epoch takes `epoch` at full power.
inline ReplayJob MadeClusterJob(std::string label, Seconds epoch) {
  ReplayJob job{.gpu_model = "v100",
                .label = label,
                .title = label,
                .max_epochs = 20,
                .default_batch_size = 32,
                .max_power = Watts(200)};
  const auto add = [&job, epoch](int batch_size, std::vector<std::optional<int>> epochs) {
    const auto at = [epoch](Watts limit, Watts power, double slowdown) {
      const Seconds time = slowdown * epoch;
      return LimitRecord{
          .limit = limit, .power = power, .epoch = {.time = time, .energy = power * time}};
    };
    job.arms.push_back(MakeArm(batch_size, std::move(epochs),
                               {at(Watts(100), Watts(95), 1.1), at(Watts(200), Watts(180), 1.0)},
                               job.eta, job.max_power));
  };
  add(8, {5, 6, 7});
  add(16, {4, 4, 5});
  add(32, {9, 10, 11});
  return job;
}

// Makes a job in which no batch size ever reaches the target.
inline ReplayJob HopelessJob() {
  ReplayJob job = MadeClusterJob("neumf", Seconds(1));
  for (ReplayArm& arm : job.arms)
    for (std::optional<int>& epochs : arm.epochs_to_target) epochs.reset();
  return job;
}

}  // namespace zeus::replay::testing
