#pragma once

#include <vector>

#include "zeus/replay/replay_job.h"

namespace zeus::replay::paper {

// A job whose numbers can be worked out by hand: batch sizes 8 to 64 (default 32) at 100 and
// 200 W. 8 takes 4 epochs, 16 takes 2 or 4, 32 takes 6, and 64 does not always arrive.
inline ReplayJob MadeJob() {
  ReplayJob job{.gpu_model = "v100",
                .label = "deepspeech2",
                .title = "DeepSpeech2",
                .max_epochs = 10,
                .default_batch_size = 32,
                .eta = 0.5,
                .max_power = Watts(200)};
  const auto add = [&job](int batch_size, std::vector<std::optional<int>> epochs, Seconds slow,
                          Seconds fast) {
    const auto record = [](Watts limit, Watts power, Seconds time) {
      return LimitRecord{
          .limit = limit, .power = power, .epoch = {.time = time, .energy = power * time}};
    };
    job.arms.push_back(
        MakeArm(batch_size, std::move(epochs),
                {record(Watts(100), Watts(90), slow), record(Watts(200), Watts(160), fast)},
                job.eta, job.max_power));
  };
  add(8, {4, 4}, Seconds(150), Seconds(100));
  add(16, {2, 4}, Seconds(110), Seconds(90));
  add(32, {6, 6}, Seconds(100), Seconds(60));
  add(64, {5, std::nullopt}, Seconds(80), Seconds(40));
  return job;
}

}  // namespace zeus::replay::paper
