#pragma once

#include "zeus/base/result.h"
#include "zeus/job/job_spec.h"

// Jobs without a known target metric: a run is a fixed number of epochs, whatever it learns. Their
// metric is the number of epochs that a run has completed, so every run that is not stopped reaches
// the target, and a batch size is judged by the speed and the power of its epochs alone: how much a
// model learns in one is not known. Such a job carries the label goal=epochs, which tells those who
// show it.
namespace zeus {

// Makes runs of the job as many epochs long. Returns kInvalidArgument when the spec has another
// label "goal".
Status SetEpochGoal(JobSpec& spec, int epochs);

bool HasEpochGoal(const JobSpec& spec);

}  // namespace zeus
