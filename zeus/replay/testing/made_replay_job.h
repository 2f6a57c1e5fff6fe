#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// One batch size of a job made for a test.
struct MadeArm {
  int batch_size = 0;
  std::vector<std::optional<int>> epochs_to_target{};
  Seconds epoch{};  // Duration at 200 W; it doubles at 100 W.
};

// Makes a job whose costs are easy to compute: MAXPOWER is 200 W and a GPU draws exactly its limit,
// so an epoch of 1 s at 200 W costs 200 J, and 300 J at 100 W.
inline ReplayJob MadeReplayJob(const std::vector<MadeArm>& arms, int default_batch_size) {
  ReplayJob job{.gpu_model = "v100",
                .label = "made",
                .title = "Made",
                .max_epochs = 10,
                .default_batch_size = default_batch_size,
                .max_power = Watts(200)};
  for (const MadeArm& arm : arms) {
    const auto record = [](Watts limit, Seconds time) {
      return LimitRecord{
          .limit = limit, .power = limit, .epoch = {.time = time, .energy = limit * time}};
    };
    job.arms.push_back(MakeArm(arm.batch_size, arm.epochs_to_target,
                               {record(Watts(100), 2 * arm.epoch), record(Watts(200), arm.epoch)},
                               job.eta, job.max_power));
  }
  return job;
}

}  // namespace zeus::replay
