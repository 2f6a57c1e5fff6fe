#include "zeus/job/event_replay.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/job/job_policy.h"

namespace zeus {

// --- details of events ---

namespace {

Result<RunRole> RoleField(const Json& detail) {
  ZEUS_TRY(const std::string name, GetField<std::string>(detail, "role"));
  const auto role = RunRoleNamed(name);
  if (!role) return Error{ErrorCode::kInvalidArgument, "role: " + Quote(name) + " is unknown"};
  return *role;
}

}  // namespace

Json ChoiceDetail(const Situation& situation, const Choice& choice) {
  return {{"recurrence", situation.recurrence}, {"attempt", situation.attempt},
          {"gpu_model", situation.gpu_model},   {"exploring", situation.exploring},
          {"batch_size", choice.batch_size},    {"role", Name(choice.role)}};
}

Result<ChoiceMade> ChoiceFromDetail(const Json& detail) {
  ChoiceMade made;
  ZEUS_TRY(made.situation.recurrence, GetField<std::int64_t>(detail, "recurrence"));
  ZEUS_TRY(made.situation.attempt, GetField<int>(detail, "attempt"));
  ZEUS_TRY(made.situation.gpu_model, GetField<std::string>(detail, "gpu_model"));
  ZEUS_TRY(made.situation.exploring, GetField<bool>(detail, "exploring"));
  ZEUS_TRY(made.choice.batch_size, GetField<int>(detail, "batch_size"));
  ZEUS_TRY(made.choice.role, RoleField(detail));
  return made;
}

Json ResultDetail(const RunResult& result) {
  Json json = {{"recurrence", result.run.recurrence},
               {"attempt", result.run.attempt},
               {"gpu_model", result.run.gpu_model},
               {"batch_size", result.run.batch_size},
               {"role", Name(result.run.role)},
               {"converged", result.converged},
               {"epochs", result.epochs},
               {"cost_joules", result.cost.value()},
               {"recurrence_cost_joules", result.recurrence_cost.value()}};
  if (result.epoch_cost) json["epoch_cost_joules"] = result.epoch_cost->value();
  return json;
}

Result<RunResult> ResultFromDetail(const Json& detail) {
  RunResult result;
  ZEUS_TRY(result.run.recurrence, GetField<std::int64_t>(detail, "recurrence"));
  ZEUS_TRY(result.run.attempt, GetField<int>(detail, "attempt"));
  ZEUS_TRY(result.run.gpu_model, GetField<std::string>(detail, "gpu_model"));
  ZEUS_TRY(result.run.batch_size, GetField<int>(detail, "batch_size"));
  ZEUS_TRY(result.run.role, RoleField(detail));
  ZEUS_TRY(result.converged, GetField<bool>(detail, "converged"));
  ZEUS_TRY(result.epochs, GetField<int>(detail, "epochs"));
  ZEUS_TRY(const double cost, GetField<double>(detail, "cost_joules"));
  ZEUS_TRY(const double recurrence_cost, GetField<double>(detail, "recurrence_cost_joules"));
  ZEUS_TRY(const auto epoch_cost, GetOptionalField<double>(detail, "epoch_cost_joules"));
  result.cost = Joules(cost);
  result.recurrence_cost = Joules(recurrence_cost);
  if (epoch_cost) result.epoch_cost = Joules(*epoch_cost);
  return result;
}

Json EpochCostDetail(const LearnedEpochCost& learned) {
  return {{"gpu_model", learned.gpu_model},
          {"batch_size", learned.batch_size},
          {"epoch_cost_joules", learned.cost.value()}};
}

Result<LearnedEpochCost> EpochCostFromDetail(const Json& detail) {
  LearnedEpochCost learned;
  ZEUS_TRY(learned.gpu_model, GetField<std::string>(detail, "gpu_model"));
  ZEUS_TRY(learned.batch_size, GetField<int>(detail, "batch_size"));
  ZEUS_TRY(const double cost, GetField<double>(detail, "epoch_cost_joules"));
  learned.cost = Joules(cost);
  return learned;
}

namespace {

constexpr const char* kRemovedReports = "removed_reports";

std::int64_t RemovedReports(const JobEvent& event) {
  if (event.kind != EventKind::kTrialReported || !event.detail.is_object()) return 0;
  const auto removed = GetOptionalField<std::int64_t>(event.detail, kRemovedReports);
  return removed.ok() ? removed.value().value_or(0) : 0;
}

}  // namespace

void NoteRemovedReports(Json& detail, std::int64_t removed) {
  const auto before = GetOptionalField<std::int64_t>(detail, kRemovedReports);
  detail[kRemovedReports] = removed + (before.ok() ? before.value().value_or(0) : 0);
}

// --- replay ---

namespace {

Status ReplayChoice(JobPolicy& policies, const Json& detail) {
  ZEUS_TRY(const ChoiceMade made, ChoiceFromDetail(detail));
  if (detail.value("given", false)) return Ok();  // The batch size was not chosen by the policy.
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
  std::int64_t removed = 0;
  for (const JobEvent& event : events) removed += RemovedReports(event);
  std::int64_t expected = 1;
  for (const JobEvent& event : events) {
    removed -= event.sequence - expected;
    if (event.sequence < expected || removed < 0)
      return Error{ErrorCode::kInternal, fmt::format("event {} is missing", expected)};
    expected = event.sequence + 1;
    if (auto replayed = Replay(policies, event); !replayed.ok())
      return Error{ErrorCode::kInternal, std::move(replayed).error().message}.While(
          fmt::format("event {} ({})", event.sequence, Name(event.kind)));
  }
  return policies.Save();
}

}  // namespace zeus
