// How an EpochHistory is saved and restored.
#include "zeus/optimizer/batch_size/epoch_history.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {
namespace {

constexpr std::string_view kArms = "arms";
constexpr std::string_view kRuns = "runs";

Json ToJson(const ArmEpochs& arm) {
  Json state;
  state["runs"] = arm.runs;
  state["converged"] = arm.converged;
  state["results"] = Json::array({arm.results, arm.mean, arm.squares});
  state["stopped"] = Json::array({arm.stops, arm.longest_stop, arm.spent, arm.dropped ? 1 : 0});
  if (arm.surprise) state["surprise"] = *arm.surprise;
  if (arm.stale) state["stale"] = Json::array({arm.stale->log_epochs, arm.stale->variance});
  if (arm.older_freedom > 0) state["older"] = Json::array({arm.older_squares, arm.older_freedom});
  return state;
}

Status ReadRareParts(const Json& state, ArmEpochs& arm) {
  ZEUS_TRY(arm.surprise, GetOptionalField<double>(state, "surprise"));
  if (const auto stale = state.find("stale"); stale != state.end()) {
    arm.stale.emplace();
    ZEUS_TRY(arm.stale->log_epochs, NumberAt(*stale, 0, kArms));
    ZEUS_TRY(arm.stale->variance, NumberAt(*stale, 1, kArms));
    if (arm.stale->variance <= 0) return DamagedState(kArms);
  }
  if (const auto older = state.find("older"); older != state.end()) {
    ZEUS_TRY(arm.older_squares, NumberAt(*older, 0, kArms));
    ZEUS_TRY(arm.older_freedom, ElementAt<std::int64_t>(*older, 1, kArms));
  }
  return Ok();
}

Result<ArmEpochs> ArmFromJson(const Json& state) {
  ArmEpochs arm;
  ZEUS_TRY(arm.runs, GetField<std::int64_t>(state, "runs"));
  ZEUS_TRY(arm.converged, GetField<std::int64_t>(state, "converged"));
  arm.ever_converged = arm.converged > 0;
  ZEUS_TRY(const Json* const results, FindPart(state, "results"));
  ZEUS_TRY(arm.results, ElementAt<std::int64_t>(*results, 0, kArms));
  ZEUS_TRY(arm.mean, NumberAt(*results, 1, kArms));
  ZEUS_TRY(arm.squares, NumberAt(*results, 2, kArms));
  ZEUS_TRY(const Json* const stopped, FindPart(state, "stopped"));
  ZEUS_TRY(arm.stops, ElementAt<int>(*stopped, 0, kArms));
  ZEUS_TRY(arm.longest_stop, ElementAt<int>(*stopped, 1, kArms));
  ZEUS_TRY(arm.spent, NumberAt(*stopped, 2, kArms));
  ZEUS_TRY(const int dropped, ElementAt<int>(*stopped, 3, kArms));
  arm.dropped = dropped != 0;
  ZEUS_RETURN_IF_ERROR(ReadRareParts(state, arm));
  if (arm.converged < 0 || arm.converged > arm.runs || arm.results < 0 || arm.squares < 0 ||
      arm.older_squares < 0 || arm.older_freedom < 0)
    return DamagedState(kArms);
  return arm;
}

Json ToJson(const RunRecord& run) {
  return Json::array({run.recurrence, run.arm, run.converged ? 1 : 0, run.epochs, run.spent,
                      run.drops ? 1 : 0, run.surprising ? 1 : 0});
}

Result<RunRecord> RunFromJson(const Json& state, std::size_t arms) {
  RunRecord run;
  ZEUS_TRY(run.recurrence, ElementAt<std::int64_t>(state, 0, kRuns));
  ZEUS_TRY(run.arm, ElementAt<std::size_t>(state, 1, kRuns));
  ZEUS_TRY(const int converged, ElementAt<int>(state, 2, kRuns));
  ZEUS_TRY(run.epochs, ElementAt<int>(state, 3, kRuns));
  ZEUS_TRY(run.spent, NumberAt(state, 4, kRuns));
  ZEUS_TRY(const int drops, ElementAt<int>(state, 5, kRuns));
  ZEUS_TRY(const int surprising, ElementAt<int>(state, 6, kRuns));
  run.converged = converged != 0;
  run.drops = drops != 0;
  run.surprising = surprising != 0;
  if (run.arm >= arms || run.epochs < 0) return DamagedState(kRuns);
  return run;
}

}  // namespace

Json EpochHistory::Save() const {
  Json state;
  if (window_ == 0) {
    Json& arms = state["arms"] = Json::array();
    for (const ArmEpochs& arm : arms_) arms.push_back(ToJson(arm));
    return state;
  }
  Json& ever = state["ever_converged"] = Json::array();
  for (const ArmEpochs& arm : arms_) ever.push_back(arm.ever_converged);
  Json& runs = state["runs"] = Json::array();
  for (const RunRecord& run : latest_) runs.push_back(ToJson(run));
  return state;
}

Status EpochHistory::Restore(const Json& state) {
  if (window_ == 0) {
    ZEUS_TRY(const Json* const arms, FindPart(state, kArms));
    if (!arms->is_array() || arms->size() != arms_.size()) return DamagedState(kArms);
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      ZEUS_TRY(arms_[i], ArmFromJson((*arms)[i]));
    }
    return Ok();
  }
  ZEUS_TRY(const auto ever, GetField<std::vector<bool>>(state, "ever_converged"));
  if (ever.size() != arms_.size()) return DamagedState("ever_converged");
  for (std::size_t i = 0; i < arms_.size(); ++i) arms_[i].ever_converged = ever[i];
  ZEUS_TRY(const Json* const runs, FindPart(state, kRuns));
  ZEUS_RETURN_IF_ERROR(CheckArray(*runs, kRuns));
  for (const Json& entry : *runs) {
    ZEUS_TRY(const RunRecord run, RunFromJson(entry, arms_.size()));
    latest_.push_back(run);
    Apply(run);
  }
  return Ok();
}

}  // namespace zeus
