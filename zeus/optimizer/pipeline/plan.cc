#include "zeus/optimizer/pipeline/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::pipeline {
namespace {

template <class Better>
std::vector<int> BestPoints(const Problem& problem, Better better) {
  std::vector<int> of_kind;
  for (const ComputationKind& kind : problem.kinds)
    of_kind.push_back(
        static_cast<int>(std::ranges::min_element(kind.points, better) - kind.points.begin()));
  std::vector<int> choice;
  for (const Computation& computation : problem.computations)
    choice.push_back(of_kind[At(computation.kind)]);
  return choice;
}

}  // namespace

Evaluation Evaluate(const Problem& problem, std::span<const int> choice,
                    std::span<const Seconds> extra) {
  Evaluation evaluation;
  evaluation.starts.assign(problem.computations.size(), Seconds(0));
  for (const int computation : problem.graph.topological_order()) {
    const auto at = At(computation);
    const ComputationKind& kind = problem.Kind(computation);
    const OperatingPoint& point = kind.points[At(choice[at])];
    evaluation.energy += EffectiveEnergy(problem, kind, point);
    const Seconds end =
        evaluation.starts[at] + point.time + (extra.empty() ? Seconds(0) : extra[at]);
    evaluation.time = std::max(evaluation.time, end);
    for (const int next : problem.graph.Successors(computation)) {
      Seconds& start = evaluation.starts[At(next)];
      start = std::max(start, end);
    }
  }
  evaluation.energy +=
      problem.blocking_power * evaluation.time * static_cast<double>(problem.stages);
  return evaluation;
}

std::vector<int> FastestChoice(const Problem& problem) {
  return BestPoints(problem, [](const OperatingPoint& a, const OperatingPoint& b) {
    return a.time != b.time ? a.time < b.time : a.energy < b.energy;
  });
}

std::vector<int> HighestClockChoice(const Problem& problem) {
  return BestPoints(
      problem, [](const OperatingPoint& a, const OperatingPoint& b) { return a.clock > b.clock; });
}

namespace {

// Reads a time, energy, power or clock, none of which may be negative.
double RequireAmount(FieldReader& fields, const char* field) {
  double amount = 0;
  fields.Require(field, amount);
  if (!std::isfinite(amount) || amount < 0) fields.Fail(field, "must not be negative");
  return amount;
}

int RequireIndex(FieldReader& fields, const char* field) {
  int index = 0;
  fields.Require(field, index);
  if (index < 0) fields.Fail(field, "must not be negative");
  return index;
}

// Returns nullptr when there is no list, after recording the failure in `fields`.
const Json* RequireList(FieldReader& fields, const Json& object, const char* field) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(field);
  if (found != object.end() && found->is_array()) return &*found;
  fields.Fail(field, "must be a list");
  return nullptr;
}

// Reads every element with `read`; an error names the element.
template <class T, class Read>
Result<std::vector<T>> ReadAll(const Json& list, std::string_view name, const Read& read) {
  std::vector<T> elements;
  elements.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    Result<T> element = read(list[i]);
    if (!element.ok()) return std::move(element).error().While(fmt::format("{}[{}]", name, i));
    elements.push_back(std::move(element).value());
  }
  return elements;
}

Json ToJson(const PlannedInstruction& planned) {
  return {{"instruction", planned.instruction},
          {"microbatch", planned.microbatch},
          {"chunk", planned.chunk},
          {"clock_mhz", planned.clock.ToMega()},
          {"start_seconds", planned.start.count()},
          {"time_seconds", planned.time.count()},
          {"energy_joules", planned.energy.value()}};
}

Result<PlannedInstruction> InstructionFromJson(const Json& json) {
  PlannedInstruction planned;
  FieldReader fields("a planned instruction", json);
  fields.Require("instruction", planned.instruction);
  planned.microbatch = RequireIndex(fields, "microbatch");
  planned.chunk = RequireIndex(fields, "chunk");
  planned.clock = Hertz::FromMega(RequireAmount(fields, "clock_mhz"));
  planned.start = Seconds(RequireAmount(fields, "start_seconds"));
  planned.time = Seconds(RequireAmount(fields, "time_seconds"));
  planned.energy = Joules(RequireAmount(fields, "energy_joules"));
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return planned;
}

Result<std::vector<PlannedInstruction>> StageFromJson(const Json& json) {
  if (!json.is_array()) return FieldError("stages", "must be a list of lists");
  return ReadAll<PlannedInstruction>(json, "instructions", InstructionFromJson);
}

Json ToJson(const OperatingPoint& point) {
  return {{"clock_mhz", point.clock.ToMega()},
          {"time_seconds", point.time.count()},
          {"energy_joules", point.energy.value()}};
}

Result<OperatingPoint> PointFromJson(const Json& json) {
  FieldReader fields("an operating point", json);
  OperatingPoint point;
  point.clock = Hertz::FromMega(RequireAmount(fields, "clock_mhz"));
  point.time = Seconds(RequireAmount(fields, "time_seconds"));
  point.energy = Joules(RequireAmount(fields, "energy_joules"));
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return point;
}

Json ToJson(const InstructionProfile& profile) {
  Json points = Json::array();
  for (const OperatingPoint& point : profile.points) points.push_back(ToJson(point));
  return {{"stage", profile.stage},
          {"instruction", profile.instruction},
          {"points", std::move(points)}};
}

Result<InstructionProfile> InstructionProfileFromJson(const Json& json) {
  InstructionProfile profile;
  FieldReader fields("the profile of an instruction", json);
  profile.stage = RequireIndex(fields, "stage");
  fields.Require("instruction", profile.instruction);
  const Json* const points = RequireList(fields, json, "points");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  ZEUS_TRY(profile.points, ReadAll<OperatingPoint>(*points, "points", PointFromJson));
  return profile;
}

Status CheckSize(const Json& stages) {
  std::size_t instructions = stages.size();
  for (const Json& stage : stages) instructions += stage.size();
  if (instructions <= static_cast<std::size_t>(kMostInstructions)) return Ok();
  return FieldError("stages", fmt::format("more than {} instructions are too many to plan for",
                                          kMostInstructions));
}

}  // namespace

Json ToJson(const PipelinePlan& plan) {
  Json stages = Json::array();
  for (const std::vector<PlannedInstruction>& stage : plan.stages) {
    Json instructions = Json::array();
    for (const PlannedInstruction& planned : stage) instructions.push_back(ToJson(planned));
    stages.push_back(std::move(instructions));
  }
  return {{"deadline_seconds", plan.deadline.count()},
          {"time_seconds", plan.time.count()},
          {"energy_joules", plan.energy.value()},
          {"waits_until_seconds", plan.waits_until.count()},
          {"bound_joules", plan.bound.value()},
          {"clock_changes", plan.clock_changes},
          {"stages", std::move(stages)}};
}

Result<PipelinePlan> PlanFromJson(const Json& json) {
  PipelinePlan plan;
  FieldReader fields("a plan", json);
  plan.deadline = Seconds(RequireAmount(fields, "deadline_seconds"));
  plan.time = Seconds(RequireAmount(fields, "time_seconds"));
  plan.energy = Joules(RequireAmount(fields, "energy_joules"));
  plan.waits_until = Seconds(RequireAmount(fields, "waits_until_seconds"));
  plan.bound = Joules(RequireAmount(fields, "bound_joules"));
  plan.clock_changes = RequireIndex(fields, "clock_changes");
  const Json* const stages = RequireList(fields, json, "stages");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  ZEUS_RETURN_IF_ERROR(CheckSize(*stages));
  ZEUS_TRY(plan.stages, ReadAll<std::vector<PlannedInstruction>>(*stages, "stages", StageFromJson));
  return plan;
}

Json ToJson(const PipelineProfile& profile) {
  Json instructions = Json::array();
  for (const InstructionProfile& one : profile.instructions) instructions.push_back(ToJson(one));
  return {{"stages", profile.stages},
          {"blocking_power_watts", profile.blocking_power.value()},
          {"instructions", std::move(instructions)}};
}

Result<PipelineProfile> ProfileFromJson(const Json& json) {
  PipelineProfile profile;
  FieldReader fields("a profile", json);
  profile.stages = RequireIndex(fields, "stages");
  profile.blocking_power = Watts(RequireAmount(fields, "blocking_power_watts"));
  const Json* const instructions = RequireList(fields, json, "instructions");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  ZEUS_TRY(profile.instructions,
           ReadAll<InstructionProfile>(*instructions, "instructions", InstructionProfileFromJson));
  ZEUS_RETURN_IF_ERROR(Check(profile));
  return profile;
}

Result<Hertz> StageClocks::Begin(std::string_view instruction) {
  if (position_ == plan_.size())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("instruction {} of an iteration is {}, but the plan has only {}: plan "
                             "for the schedule that the program follows",
                             position_ + 1, Quote(instruction), plan_.size())};
  const PlannedInstruction& planned = plan_[position_];
  if (planned.instruction != instruction)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("instruction {} of an iteration is {}, but the plan has {}: plan for "
                             "the schedule that the program follows",
                             position_ + 1, Quote(instruction), Quote(planned.instruction))};
  ++position_;
  planned_time_ += planned.time;
  return planned.clock;
}

Hertz StageClocks::Next() const {
  if (plan_.empty()) return Hertz(0);
  return plan_[position_ == plan_.size() ? 0 : position_].clock;
}

Status StageClocks::EndIteration() {
  const std::size_t done = position_;
  position_ = 0;
  planned_time_ = Seconds(0);
  if (done == plan_.size()) return Ok();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("an iteration ended after {} of the plan's {} instructions: plan for the "
                  "schedule that the program follows",
                  done, plan_.size())};
}

}  // namespace zeus::pipeline
