#pragma once

#include <functional>

#include "examples/pipeline/channel.h"
#include "examples/pipeline/stage_training.h"
#include "zeus/base/result.h"

namespace zeus::examples {

// The connections of one process of the job.
struct StageLinks {
  int stage = 0;
  Neighbours neighbours{};
  std::unique_ptr<SocketCollective> collective{};
};

// Forks a process for each stage, connects the processes, and calls `run` in each; its result is
// the exit code of the process. Waits for all and returns the first exit code that is not 0. When
// one stage fails, or the job is killed or receives SIGINT, SIGTERM or SIGHUP, the other stages are
// terminated. Must be called before any thread is started.
Result<int> RunStages(int stages, const std::function<int(StageLinks)>& run);

}  // namespace zeus::examples
