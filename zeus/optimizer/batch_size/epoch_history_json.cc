// How an EpochHistory is saved and restored.
#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/epoch_history.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {
namespace {

constexpr std::string_view kArms = "arms";
constexpr std::string_view kRuns = "runs";

Json ToJson(const ArmEpochs& arm) {
  Json state = Json::array({arm.runs, arm.converged, arm.results, arm.mean, arm.squares, arm.stops,
                            arm.longest_stop, arm.spent, arm.dropped ? 1 : 0});
  if (!arm.surprise && !arm.stale && arm.older_freedom == 0) return state;
  Json& rare = state.emplace_back(Json::object());
  if (arm.surprise) rare["surprise"] = *arm.surprise;
  if (arm.stale) rare["stale"] = Json::array({arm.stale->log_epochs, arm.stale->variance});
  rare["older"] = Json::array({arm.older_squares, arm.older_freedom});
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
  ZEUS_TRY(const Json* const older, FindPart(state, "older"));
  ZEUS_TRY(arm.older_squares, NumberAt(*older, 0, kArms));
  ZEUS_TRY(arm.older_freedom, ElementAt<std::int64_t>(*older, 1, kArms));
  return Ok();
}

Result<ArmEpochs> ArmFromJson(const Json& state) {
  constexpr std::size_t kRareParts = 9;
  ArmEpochs arm;
  ZEUS_TRY(arm.runs, ElementAt<std::int64_t>(state, 0, kArms));
  ZEUS_TRY(arm.converged, ElementAt<std::int64_t>(state, 1, kArms));
  ZEUS_TRY(arm.results, ElementAt<std::int64_t>(state, 2, kArms));
  ZEUS_TRY(arm.mean, NumberAt(state, 3, kArms));
  ZEUS_TRY(arm.squares, NumberAt(state, 4, kArms));
  ZEUS_TRY(arm.stops, ElementAt<int>(state, 5, kArms));
  ZEUS_TRY(arm.longest_stop, ElementAt<int>(state, 6, kArms));
  ZEUS_TRY(arm.spent, NumberAt(state, 7, kArms));
  ZEUS_TRY(const int dropped, ElementAt<int>(state, 8, kArms));
  arm.dropped = dropped != 0;
  arm.ever_converged = arm.converged > 0;
  if (state.size() > kRareParts) ZEUS_RETURN_IF_ERROR(ReadRareParts(state[kRareParts], arm));
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
