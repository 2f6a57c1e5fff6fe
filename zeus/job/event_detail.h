#pragma once

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/optimizer/batch_size/policy.h"

// What events say about the policy: enough to tell it the same things again, bit by bit.
namespace zeus {

// trial_started, and the beginning of trial_skipped.
Json ChoiceDetail(const Situation& situation, const Choice& choice);
struct ChoiceMade {
  Situation situation{};
  Choice choice{};
};
Result<ChoiceMade> ChoiceFromDetail(const Json& detail);

// trial_ended of a trial that teaches.
Json ResultDetail(const RunResult& result);
Result<RunResult> ResultFromDetail(const Json& detail);

// epoch_cost_learned.
struct LearnedEpochCost {
  std::string gpu_model{};
  int batch_size = 0;
  Joules cost{};
};
Json EpochCostDetail(const LearnedEpochCost& learned);
Result<LearnedEpochCost> EpochCostFromDetail(const Json& detail);

}  // namespace zeus
