#include "python/bindings/pipeline_planner.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/profile.h"
#include "zeus/optimizer/pipeline/profile_csv.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"
#include "zeus/plan/plan_repository.h"

namespace zeus::python {
namespace {

using pipeline::PipelinePlan;
using pipeline::PipelineProfile;
using pipeline::PlannedInstruction;

// A row of a profile in Python: stage, instruction, MHz, seconds, joules.
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

std::vector<Row> ListRows(const PipelineProfile& profile) {
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

PipelineProfile SelectStages(const PipelineProfile& profile, const std::vector<int>& stages) {
  for (const int stage : stages)
    if (stage < 0 || stage >= profile.stages)
      throw Failure({ErrorCode::kInvalidArgument,
                     "stages: the profile has no stage " + std::to_string(stage)});
  return WithStages(profile, stages);
}

NamedClocks NameClocks(const PipelinePlan& plan) {
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
           [](const PipelineProfile& profile) { return JsonText(pipeline::ToJson(profile)); })
      .def("spread",
           [](const PipelineProfile& profile, int wanted) {
             return WithStages(profile, pipeline::SpreadStages(wanted, profile.stages));
           })
      .def("with_stages", &SelectStages, py::arg("stages"))
      .def_property_readonly("rows", &ListRows)
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
      .def("to_json", [](const PipelinePlan& plan) { return JsonText(pipeline::ToJson(plan)); })
      .def("to_reference_schedule", &pipeline::ToReferenceSchedule)
      .def_property_readonly("deadline", seconds(&PipelinePlan::deadline))
      .def_property_readonly("time", seconds(&PipelinePlan::time))
      .def_property_readonly("waits_until", seconds(&PipelinePlan::waits_until))
      .def_property_readonly("energy", [](const PipelinePlan& plan) { return plan.energy.value(); })
      .def_property_readonly("bound", [](const PipelinePlan& plan) { return plan.bound.value(); })
      .def_property_readonly("gap", &PipelinePlan::gap)
      .def_readonly("clock_changes", &PipelinePlan::clock_changes)
      .def_readonly("stages", &PipelinePlan::stages)
      .def_property_readonly("clocks", &NameClocks);
  module.def("parse_reference_schedule", &ParseReference, py::arg("text"));
}

namespace {

using pipeline::PipelinePlan;
using pipeline::PipelineProfile;
using pipeline::Planner;
using pipeline::RankClocks;

constexpr Seconds kSignalCheckPeriod = std::chrono::milliseconds(50);

// Lets Python run periodically during a solve, to handle Ctrl-C and to report progress. An
// exception raised meanwhile is thrown after the solver has stopped.
class SolverObserver {
 public:
  explicit SolverObserver(py::object progress) : progress_(std::move(progress)) {}

  pipeline::SolveOptions Options() {
    return {.progress = [this](double share) { return Continue(share); }};
  }
  bool interrupted() const { return interrupted_; }

 private:
  bool Continue(double share) {
    if (clock_.Now() < next_) return true;
    const py::gil_scoped_acquire acquired;
    next_ = clock_.Now() + kSignalCheckPeriod;
    interrupted_ = PyErr_CheckSignals() != 0 || !ReportProgress(share);
    return !interrupted_;
  }

  bool ReportProgress(double share) const {
    if (progress_.is_none()) return true;
    try {
      progress_(share);
      return true;
    } catch (py::error_already_set& raised) {
      raised.restore();
      return false;
    }
  }

  const py::object progress_;
  SystemClock clock_;
  TimePoint next_{};
  bool interrupted_ = false;
};

// Name, microbatches, chunks, and the instructions of a custom schedule, as
// zeus.optimizer.pipeline_frequency has checked them.
using ScheduleSpec = std::tuple<std::string, int, int, std::string>;

pipeline::Problem ProblemFor(PipelineProfile profile, ScheduleSpec given) {
  auto& [schedule, microbatches, chunks, custom_schedule] = given;
  PlanSpec spec{.profile = std::move(profile),
                .schedule = std::move(schedule),
                .microbatches = microbatches,
                .chunks = chunks,
                .custom_schedule = std::move(custom_schedule)};
  return Unwrap(ToProblem(Unwrap(Checked(std::move(spec)))));
}

std::shared_ptr<Planner> Solve(const PipelineProfile& profile, const ScheduleSpec& schedule,
                               const py::object& progress) {
  SolverObserver onlooker(progress);
  Result<std::unique_ptr<Planner>> solved = [&] {
    const WithoutGil released;
    return Planner::Make(ProblemFor(profile, schedule), {.solve = onlooker.Options()});
  }();
  if (onlooker.interrupted()) throw py::error_already_set();
  return Unwrap(std::move(solved));
}

PipelinePlan PlanOne(const PipelineProfile& profile, const ScheduleSpec& schedule,
                     const pipeline::ClockChangeRules& rules, double slowdown) {
  const auto planner = Unwrap(
      Planner::Make(ProblemFor(profile, schedule), {.demand = pipeline::Demand::kOneDeadline}));
  return Unwrap(planner->Plan(planner->baseline().time * slowdown, rules));
}

std::vector<RankClocks> SplitByRank(const NamedClocks& clocks) {
  std::vector<RankClocks> ranks;
  for (const auto& stage : clocks) {
    ranks.emplace_back();
    for (const auto& [name, clock] : stage) ranks.back().emplace_back(name, Hertz::FromMega(clock));
  }
  return ranks;
}

PipelinePlan EvaluateClocks(const Planner& planner, const NamedClocks& clocks, double latency) {
  PipelinePlan plan =
      Unwrap(EvaluateReference(planner.problem(), SplitByRank(clocks), Seconds(latency)));
  const pipeline::Frontier& frontier = planner.frontier();
  // True times are not whole ticks, and the fastest time of the frontier is rounded up to them.
  plan.deadline = plan.time;
  plan.bound =
      frontier.EnergyAt(std::max(frontier.TicksWithin(plan.time), frontier.fastest().ticks));
  return plan;
}

template <class Value>
std::vector<double> FrontierValues(const Planner& planner, const Value& value) {
  std::vector<double> values;
  for (const pipeline::FrontierPoint& point : planner.frontier().points())
    values.push_back(value(point));
  std::ranges::reverse(values);  // The fastest comes first.
  return values;
}

double EnergyWithin(const Planner& planner, double time) {
  const pipeline::Frontier& frontier = planner.frontier();
  const pipeline::Ticks ticks = frontier.TicksWithin(Seconds(time) + frontier.tick());
  if (ticks < frontier.fastest().ticks)
    throw Failure({ErrorCode::kInvalidArgument, "no plan is faster than " +
                                                    std::to_string(planner.fastest_time().count()) +
                                                    " s: ask for a longer time"});
  return frontier.EnergyAt(ticks).value();
}

}  // namespace

void BindPlanner(py::module_& module) {
  using Rules = pipeline::ClockChangeRules;
  const py::call_guard<WithoutGil> without_gil;
  py::class_<Rules>(module, "ClockChangeRules")
      .def(py::init([](int least_instructions, double latency) {
             return Rules{.least_instructions = least_instructions, .latency = Seconds(latency)};
           }),
           py::arg("least_instructions"), py::arg("latency"));
  py::class_<Planner, std::shared_ptr<Planner>>(module, "Planner")
      .def(py::init(&Solve), py::arg("profile"), py::arg("schedule"), py::arg("progress"))
      .def(
          "plan",
          [](const Planner& planner, double deadline, const Rules& rules) {
            return Unwrap(planner.Plan(Seconds(deadline), rules));
          },
          py::arg("deadline"), py::arg("rules"), without_gil)
      .def(
          "plan_for_pace",
          [](const Planner& planner, double pace, const Rules& rules) {
            return Unwrap(planner.PlanForPace(Seconds(pace), rules));
          },
          py::arg("pace"), py::arg("rules"), without_gil)
      .def("evaluate", &EvaluateClocks, py::arg("clocks"), py::arg("latency"), without_gil)
      .def("energy_within", &EnergyWithin, py::arg("time"))
      .def(
          "saving",
          [](const Planner& planner, const PipelinePlan& plan) {
            return pipeline::Saving(plan, planner.baseline(), planner.problem());
          },
          py::arg("plan"))
      .def_property_readonly("frontier_times",
                             [](const Planner& planner) {
                               return FrontierValues(
                                   planner, [](const auto& point) { return point.time.count(); });
                             })
      .def_property_readonly("frontier_energies",
                             [](const Planner& planner) {
                               return FrontierValues(
                                   planner, [](const auto& point) { return point.energy.value(); });
                             })
      .def_property_readonly("baseline_time",
                             [](const Planner& planner) { return planner.baseline().time.count(); })
      .def_property_readonly(
          "baseline_energy",
          [](const Planner& planner) { return planner.baseline().energy.value(); })
      .def_property_readonly("fastest_time",
                             [](const Planner& planner) { return planner.fastest_time().count(); })
      .def_property_readonly(
          "solver", [](const Planner& planner) { return pipeline::SolverText(planner.solver()); })
      .def_property_readonly("stages",
                             [](const Planner& planner) { return planner.problem().stages; })
      .def_property_readonly("microbatches",
                             [](const Planner& planner) { return planner.problem().microbatches; });
  module.def("plan_once", &PlanOne, py::arg("profile"), py::arg("schedule"), py::arg("rules"),
             py::arg("slowdown"), without_gil);
}

}  // namespace zeus::python
