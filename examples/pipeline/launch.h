#pragma once

#include <functional>

#include "examples/pipeline/socket_collective.h"
#include "examples/pipeline/stage_training.h"
#include "zeus/base/result.h"

namespace zeus::examples {

// What a process of the job needs to take part in it.
struct StageLinks {
  int stage = 0;
  Neighbours neighbours{};
  std::unique_ptr<SocketCollective> collective{};
};

// Forks a process for each stage, connects them, and lets each call `run`, whose outcome is its
// exit code. Waits for all; when one ends badly the others are told to end, as they are when
// SIGINT, SIGTERM or SIGHUP ends the job or it is killed. To be called before there are threads.
// The first exit code that is not 0.
Result<int> RunStages(int stages, const std::function<int(StageLinks)>& run);

}  // namespace zeus::examples
