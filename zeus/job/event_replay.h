#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/optimizer/batch_size/policy.h"

// The state of a job's policy is a function of its events. JobChange writes into JobEvent::detail
// everything that it passes to the policy, and ReplayPolicy() passes the same to a new one.
namespace zeus {

// The detail of trial_started, and the first part of that of trial_skipped.
Json ChoiceDetail(const Situation& situation, const Choice& choice);
struct ChoiceMade {
  Situation situation{};
  Choice choice{};
};
Result<ChoiceMade> ChoiceFromDetail(const Json& detail);

// The detail of trial_ended, for trials whose results the policy observes.
Json ResultDetail(const RunResult& result);
Result<RunResult> ResultFromDetail(const Json& detail);

// The detail of epoch_cost_learned.
struct LearnedEpochCost {
  std::string gpu_model{};
  int batch_size = 0;
  Joules cost{};
};
Json EpochCostDetail(const LearnedEpochCost& learned);
Result<LearnedEpochCost> EpochCostFromDetail(const Json& detail);

// Notes in the detail of a trial_reported how many earlier reports of its trial were removed, which
// adds to those that were removed before: nothing else may be missing.
void NoteRemovedReports(Json& detail, std::int64_t removed);

// Returns the state of a job's policy after these events. It is equal, byte for byte, to the one
// that is stored with the job, unless a result was lost or counted twice. Returns kInternal, with
// the number of the event, for an event that could not have happened.
Result<Json> ReplayPolicy(const Job& job, std::span<const JobEvent> events);

}  // namespace zeus
