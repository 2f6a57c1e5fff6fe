#include "zeus/job/event_detail.h"

#include <string>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus {
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

}  // namespace zeus
