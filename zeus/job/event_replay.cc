#include "zeus/job/event_replay.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/json.h"
#include "zeus/job/event_detail.h"
#include "zeus/job/job_policy.h"

namespace zeus {
namespace {

Status ReplayChoice(JobPolicy& policies, const Json& detail) {
  ZEUS_TRY(const ChoiceMade made, ChoiceFromDetail(detail));
  if (detail.value("given", false)) return Ok();  // No policy was asked.
  ZEUS_TRY(BatchSizePolicy * policy, policies.For(made.situation.gpu_model));
  const Choice choice = policy->Choose(made.situation);
  if (choice == made.choice) return Ok();
  return Error{ErrorCode::kInternal,
               fmt::format("batch size {} ({}) was handed out where the belief says {} ({})",
                           made.choice.batch_size, Name(made.choice.role), choice.batch_size,
                           Name(choice.role))};
}

Status ReplayResult(JobPolicy& policies, const Json& detail) {
  ZEUS_TRY(const RunResult result, ResultFromDetail(detail));
  ZEUS_TRY(BatchSizePolicy * policy, policies.For(result.run.gpu_model));
  policy->Observe(result);
  return Ok();
}

Status Replay(JobPolicy& policies, const JobEvent& event) {
  switch (event.kind) {
    case EventKind::kTrialStarted:
      return ReplayChoice(policies, event.detail);
    case EventKind::kTrialSkipped:
      ZEUS_RETURN_IF_ERROR(ReplayChoice(policies, event.detail));
      return ReplayResult(policies, event.detail.at("result"));
    case EventKind::kTrialEnded:
      if (!event.detail.contains("result")) return Ok();
      return ReplayResult(policies, event.detail.at("result"));
    case EventKind::kEpochCostLearned: {
      ZEUS_TRY(const LearnedEpochCost learned, EpochCostFromDetail(event.detail));
      ZEUS_TRY(BatchSizePolicy * policy, policies.For(learned.gpu_model));
      policy->LearnEpochCost(learned.gpu_model, learned.batch_size, learned.cost);
      return Ok();
    }
    case EventKind::kJobCreated:
    case EventKind::kTrialReported:
    case EventKind::kTrialExpired:
      return Ok();
  }
  return Ok();
}

}  // namespace

Result<Json> ReplayPolicy(const Job& job, std::span<const JobEvent> events) {
  Job fresh = job;
  fresh.policy_state = nullptr;
  ZEUS_TRY(JobPolicy policies, JobPolicy::Restore(fresh));
  std::int64_t expected = 1;
  for (const JobEvent& event : events) {
    if (event.sequence != expected)
      return Error{ErrorCode::kInternal, fmt::format("event {} is missing", expected)};
    ++expected;
    if (auto replayed = Replay(policies, event); !replayed.ok())
      return Error{ErrorCode::kInternal, std::move(replayed).error().message}.While(
          fmt::format("event {} ({})", event.sequence, Name(event.kind)));
  }
  return policies.Save();
}

}  // namespace zeus
