#include "python/bindings/pipeline_plan.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <tuple>

#include "python/bindings/bind.h"
#include "python/bindings/errors.h"
#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/plan_json.h"
#include "zeus/optimizer/pipeline/profile_csv.h"
#include "zeus/optimizer/pipeline/profile_stages.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"

namespace zeus::python {
namespace {

using pipeline::PipelinePlan;
using pipeline::PipelineProfile;
using pipeline::PlannedInstruction;

// What Python knows a row of a profile by: stage, instruction, MHz, seconds, joules.
using Row = std::tuple<int, std::string, double, double, double>;

PipelineProfile ProfileFromRows(const std::vector<Row>& rows, double blocking_power) {
  PipelineProfile profile{.blocking_power = Watts(blocking_power)};
  for (const auto& [stage, name, clock, time, energy] : rows) {
    profile.stages = std::max(profile.stages, stage + 1);
    auto found = std::ranges::find_if(profile.instructions, [&](const auto& instruction) {
      return instruction.stage == stage && instruction.instruction == name;
    });
    if (found == profile.instructions.end()) {
      profile.instructions.push_back({.stage = stage, .instruction = name});
      found = profile.instructions.end() - 1;
    }
    found->points.push_back(
        {.clock = Hertz::FromMega(clock), .time = Seconds(time), .energy = Joules(energy)});
  }
  Check(pipeline::Check(profile));
  return profile;
}

std::vector<Row> RowsOf(const PipelineProfile& profile) {
  std::vector<Row> rows;
  for (const pipeline::InstructionProfile& instruction : profile.instructions)
    for (const pipeline::OperatingPoint& point : instruction.points)
      rows.emplace_back(instruction.stage, instruction.instruction, point.clock.ToMega(),
                        point.time.count(), point.energy.value());
  return rows;
}

PipelineProfile ProfileFromCsv(const std::string& text, double blocking_power, double scale) {
  PipelineProfile profile = Unwrap(pipeline::ParseProfileCsv(text));
  profile.blocking_power = Watts(blocking_power);
  for (pipeline::InstructionProfile& instruction : profile.instructions)
    for (pipeline::OperatingPoint& point : instruction.points) point.energy = point.energy * scale;
  Check(pipeline::Check(profile));
  return profile;
}

PipelineProfile StagesOf(const PipelineProfile& profile, const std::vector<int>& stages) {
  for (const int stage : stages)
    if (stage < 0 || stage >= profile.stages)
      throw Failure({ErrorCode::kInvalidArgument,
                     "stages: the profile has no stage " + std::to_string(stage)});
  return WithStages(profile, stages);
}

NamedClocks ClocksOf(const PipelinePlan& plan) {
  NamedClocks clocks;
  for (const auto& stage : plan.stages) {
    clocks.emplace_back();
    for (const PlannedInstruction& planned : stage)
      clocks.back().emplace_back(planned.instruction, planned.clock.ToMega());
  }
  return clocks;
}

NamedClocks ParseReference(const std::string& text) {
  NamedClocks clocks;
  for (const pipeline::RankClocks& rank : Unwrap(pipeline::ParseReferenceSchedule(text))) {
    clocks.emplace_back();
    for (const auto& [name, clock] : rank) clocks.back().emplace_back(name, clock.ToMega());
  }
  return clocks;
}

void BindInstruction(py::module_& module) {
  py::class_<PlannedInstruction>(module, "PlannedInstruction")
      .def_readonly("instruction", &PlannedInstruction::instruction)
      .def_readonly("microbatch", &PlannedInstruction::microbatch)
      .def_readonly("chunk", &PlannedInstruction::chunk)
      .def_property_readonly(
          "frequency", [](const PlannedInstruction& planned) { return planned.clock.ToMega(); })
      .def_property_readonly(
          "start", [](const PlannedInstruction& planned) { return planned.start.count(); })
      .def_property_readonly("time",
                             [](const PlannedInstruction& planned) { return planned.time.count(); })
      .def_property_readonly(
          "energy", [](const PlannedInstruction& planned) { return planned.energy.value(); });
}

}  // namespace

void BindProfile(py::module_& module) {
  py::class_<PipelineProfile>(module, "Profile")
      .def(py::init(&ProfileFromRows), py::arg("rows"), py::arg("blocking_power"))
      .def_static("from_csv", &ProfileFromCsv, py::arg("text"), py::arg("blocking_power"),
                  py::arg("scale"))
      .def_static(
          "from_json",
          [](const std::string& text) {
            PipelineProfile profile = Unwrap(pipeline::ProfileFromJson(Unwrap(ParseJson(text))));
            Check(pipeline::Check(profile));
            return profile;
          },
          py::arg("text"))
      .def("to_csv", [](const PipelineProfile& profile) { return pipeline::ToCsv(profile); })
      .def("to_json",
           [](const PipelineProfile& profile) { return pipeline::ToJson(profile).dump(); })
      .def("spread",
           [](const PipelineProfile& profile, int wanted) {
             return WithStages(profile, pipeline::SpreadStages(wanted, profile.stages));
           })
      .def("with_stages", &StagesOf, py::arg("stages"))
      .def_property_readonly("rows", &RowsOf)
      .def_readonly("stages", &PipelineProfile::stages)
      .def_property_readonly("blocking_power", [](const PipelineProfile& profile) {
        return profile.blocking_power.value();
      });
}

void BindPlan(py::module_& module) {
  BindInstruction(module);
  const auto seconds = [](Seconds PipelinePlan::*field) {
    return [field](const PipelinePlan& plan) { return (plan.*field).count(); };
  };
  py::class_<PipelinePlan>(module, "Plan")
      .def_static(
          "from_json",
          [](const std::string& text) {
            return Unwrap(pipeline::PlanFromJson(Unwrap(ParseJson(text))));
          },
          py::arg("text"))
      .def("to_json", [](const PipelinePlan& plan) { return pipeline::ToJson(plan).dump(); })
      .def("to_reference_schedule", &pipeline::ToReferenceSchedule)
      .def_property_readonly("deadline", seconds(&PipelinePlan::deadline))
      .def_property_readonly("time", seconds(&PipelinePlan::time))
      .def_property_readonly("waits_until", seconds(&PipelinePlan::waits_until))
      .def_property_readonly("energy", [](const PipelinePlan& plan) { return plan.energy.value(); })
      .def_property_readonly("bound", [](const PipelinePlan& plan) { return plan.bound.value(); })
      .def_property_readonly("gap", &PipelinePlan::gap)
      .def_readonly("clock_changes", &PipelinePlan::clock_changes)
      .def_readonly("stages", &PipelinePlan::stages)
      .def_property_readonly("clocks", &ClocksOf);
  module.def("parse_reference_schedule", &ParseReference, py::arg("text"));
}

}  // namespace zeus::python
