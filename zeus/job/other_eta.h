#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/job/job_service.h"
#include "zeus/job/recurrences.h"

namespace zeus {

// A change in per cent, with one standard deviation where both sides have one.
struct RelativeChange {
  double percent = 0;
  std::optional<double> sigma{};
};

// The beliefs and the choice of a job if another eta had weighed energy and time: a policy of the
// same kind that has seen the same runs, with their costs under that eta. What the runs took is
// known; the runs that another eta would have made instead are not, and `notes` says so.
struct OtherEta {
  double eta = 0;
  JobArms arms{};
  // The best batch size under the job's own eta, which the changes are relative to.
  int own_best = 0;
  std::vector<MeasuredArm> measured{};  // In the order of arms.arms; costs are under `eta`.
  // The measured change from a training with own_best to one with arms.best_batch_size; nullopt
  // when both are the same or one of them has never reached the target.
  std::optional<RelativeChange> energy{};
  std::optional<RelativeChange> time{};
  std::vector<std::string> notes{};  // The limits of this answer, as sentences.
};

// `trials` are all trials of the job. Returns kInvalidArgument for an eta that is not in [0, 1].
Result<OtherEta> ReplayUnderEta(const Job& job, std::span<const Trial> trials,
                                const std::string& gpu_model, double eta);

}  // namespace zeus
