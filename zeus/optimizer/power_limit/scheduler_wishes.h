#pragma once

#include <optional>

#include "zeus/base/file.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/power_limit/selector.h"

namespace zeus {

// How the user of a scheduler wants the job to be treated, as in
// srun --zeus=optimize --zeus-max-slowdown=1.05 (docs/slurm.md). Tasks have it in their
// environment.
struct SchedulerWishes {
  bool optimize = false;                 // ZEUS_MODE=optimize: the best power limit is to be set.
  std::optional<double> max_slowdown{};  // ZEUS_MAX_SLOWDOWN: 1.05 for 5 % longer at most.
};

// kInvalidArgument names a variable whose value cannot be meant.
Result<SchedulerWishes> ReadSchedulerWishes(const Environment& environment);

// The objective within the slowdown that is wished for; as it is without such a wish.
Selector Within(const SchedulerWishes& wishes, Selector objective);

}  // namespace zeus
