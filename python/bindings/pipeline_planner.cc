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
#include "python/bindings/errors.h"
#include "python/bindings/pipeline_plan.h"
#include "python/bindings/without_gil.h"
#include "zeus/base/clock.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/reference_plan.h"
#include "zeus/plan/plan_spec.h"

namespace zeus::python {
namespace {

using pipeline::PipelinePlan;
using pipeline::PipelineProfile;
using pipeline::Planner;
using pipeline::RankClocks;

constexpr Seconds kSignalCheckPeriod = std::chrono::milliseconds(50);

// Lets Python have a look at the solver now and then: for Ctrl-C, and for who wants to know how far
// it is. What is raised meanwhile is thrown when the solver has stopped.
class Onlooker {
 public:
  explicit Onlooker(py::object progress) : progress_(std::move(progress)) {}

  pipeline::SolveOptions Options() {
    return {.progress = [this](double share) { return GoesOn(share); }};
  }
  bool interrupted() const { return interrupted_; }

 private:
  bool GoesOn(double share) {
    if (clock_.Now() < next_) return true;
    const py::gil_scoped_acquire acquired;
    next_ = clock_.Now() + kSignalCheckPeriod;
    interrupted_ = PyErr_CheckSignals() != 0 || !Tell(share);
    return !interrupted_;
  }

  bool Tell(double share) const {
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

// Name, microbatches, chunks, and the list of a custom one: as zeus.optimizer.pipeline_frequency
// has checked them.
using ScheduleSpec = std::tuple<std::string, int, int, std::string>;

pipeline::Problem ProblemFor(PipelineProfile profile, ScheduleSpec given) {
  auto& [schedule, microbatches, chunks, custom_schedule] = given;
  PlanSpec spec{.profile = std::move(profile),
                .schedule = std::move(schedule),
                .microbatches = microbatches,
                .chunks = chunks,
                .custom_schedule = std::move(custom_schedule)};
  return Unwrap(ProblemOf(Unwrap(Checked(std::move(spec)))));
}

std::shared_ptr<Planner> Solve(const PipelineProfile& profile, const ScheduleSpec& schedule,
                               const py::object& progress) {
  Onlooker onlooker(progress);
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

std::vector<RankClocks> RanksOf(const NamedClocks& clocks) {
  std::vector<RankClocks> ranks;
  for (const auto& stage : clocks) {
    ranks.emplace_back();
    for (const auto& [name, clock] : stage) ranks.back().emplace_back(name, Hertz::FromMega(clock));
  }
  return ranks;
}

PipelinePlan EvaluateClocks(const Planner& planner, const NamedClocks& clocks, double latency) {
  PipelinePlan plan =
      Unwrap(EvaluateReference(planner.problem(), RanksOf(clocks), Seconds(latency)));
  const pipeline::Frontier& frontier = planner.frontier();
  // True times are not whole ticks; the frontier's fastest time is rounded up to them.
  plan.deadline = plan.time;
  plan.bound =
      frontier.EnergyAt(std::max(frontier.TicksWithin(plan.time), frontier.fastest().ticks));
  return plan;
}

template <class Value>
std::vector<double> PointsOf(const Planner& planner, const Value& value) {
  std::vector<double> values;
  for (const pipeline::FrontierPoint& point : planner.frontier().points())
    values.push_back(value(point));
  std::ranges::reverse(values);  // The fastest first.
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
                               return PointsOf(
                                   planner, [](const auto& point) { return point.time.count(); });
                             })
      .def_property_readonly("frontier_energies",
                             [](const Planner& planner) {
                               return PointsOf(
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
