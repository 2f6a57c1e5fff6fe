#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/quantity_fields.h"

namespace zeus::wire {
namespace {

constexpr std::array<std::pair<ArmState, std::string_view>, 3> kStates = {{
    {ArmState::kUntried, "untried"},
    {ArmState::kCandidate, "candidate"},
    {ArmState::kDropped, "dropped"},
}};

std::optional<ArmState> ArmStateNamed(std::string_view name) {
  for (const auto& [state, state_name] : kStates)
    if (state_name == name) return state;
  return std::nullopt;
}

Json ToJson(const ArmBelief& arm) {
  return {{"batch_size", arm.batch_size},
          {"state", Name(arm.state)},
          {"runs", arm.runs},
          {"converged", arm.converged},
          {"epochs", OrNull(arm.epochs)},
          {"epoch_cost_joules", OrNull(arm.epoch_cost)},
          {"epoch_cost_profiled", arm.epoch_cost_profiled},
          {"cost_joules", OrNull(arm.cost)},
          {"cost_sigma_joules", OrNull(arm.cost_sigma)}};
}

// A belief about a cost may be negative while there is little to go by.
void ReadCost(FieldReader& fields, const char* field, std::optional<Joules>& target) {
  std::optional<double> number;
  fields.Read(field, number);
  if (number) target = Joules(*number);
}

Result<ArmBelief> ArmFromJson(const Json& json) {
  ArmBelief arm;
  std::string state;
  FieldReader fields("an arm", json);
  fields.Require("batch_size", arm.batch_size);
  fields.Require("state", state);
  fields.Require("runs", arm.runs);
  fields.Require("converged", arm.converged);
  fields.Read("epochs", arm.epochs);
  ReadCost(fields, "epoch_cost_joules", arm.epoch_cost);
  fields.Require("epoch_cost_profiled", arm.epoch_cost_profiled);
  ReadCost(fields, "cost_joules", arm.cost);
  ReadCost(fields, "cost_sigma_joules", arm.cost_sigma);
  const auto known_state = ArmStateNamed(state);
  if (!known_state) fields.Fail("state", "is not known");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  arm.state = *known_state;
  return arm;
}

}  // namespace

std::string_view Name(ArmState state) {
  for (const auto& [known, name] : kStates)
    if (known == state) return name;
  return "unknown";
}

Json ToJson(const JobArms& arms) {
  Json list = Json::array();
  for (const ArmBelief& arm : arms.arms) list.push_back(ToJson(arm));
  return {{"gpu_model", arms.gpu_model},
          {"stage", arms.stage},
          {"best_batch_size", arms.best_batch_size},
          {"arms", std::move(list)}};
}

Result<JobArms> JobArmsFromJson(const Json& json) {
  JobArms arms;
  FieldReader fields("arms", json);
  fields.Require("gpu_model", arms.gpu_model);
  fields.Require("stage", arms.stage);
  fields.Require("best_batch_size", arms.best_batch_size);
  const auto list = json.find("arms");
  if (list == json.end() || !list->is_array()) fields.Fail("arms", "must be a list");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  for (const Json& item : *list) {
    ZEUS_TRY(const ArmBelief arm, ArmFromJson(item));
    arms.arms.push_back(arm);
  }
  return arms;
}

}  // namespace zeus::wire
