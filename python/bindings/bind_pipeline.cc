#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "python/bindings/bind.h"
#include "python/bindings/pipeline_plan.h"
#include "python/bindings/pipeline_planner.h"
#include "python/bindings/pipeline_run.h"

namespace zeus::python {
namespace {

PipelineRank RankOf(const py::dict& fields) {
  const auto number = [&fields](const char* name) { return fields[name].cast<int>(); };
  return {.dp_rank = number("dp_rank"),
          .pp_rank = number("pp_rank"),
          .tp_rank = number("tp_rank"),
          .dp_degree = number("dp_degree"),
          .pp_degree = number("pp_degree"),
          .tp_degree = number("tp_degree")};
}

// By the names that the options have in zeus.optimizer.pipeline_frequency, which has checked them.
PipelineOptions OptionsOf(const py::dict& rank, const py::dict& fields) {
  PipelineOptions options;
  options.rank = RankOf(rank);
  options.job.id = fields["plan_id"].cast<std::string>();
  options.job.schedule = fields["schedule"].cast<std::string>();
  options.job.custom_schedule = fields["custom_schedule"].cast<std::string>();
  options.job.microbatches = fields["microbatches"].cast<int>();
  options.job.chunks = fields["chunks"].cast<int>();
  options.job.slowdown = fields["slowdown"].cast<double>();
  options.job.clock_changes.least_instructions = fields["least_instructions"].cast<int>();
  options.job.clock_changes.latency = Seconds(fields["clock_latency"].cast<double>());
  options.stride = Hertz::FromMega(fields["frequency_stride"].cast<double>());
  options.ceiling = fields["may_raise"].cast<bool>() ? Ceiling::kOfDevice : Ceiling::kAsFound;
  options.straggler_threshold = fields["straggler_threshold"].cast<std::optional<double>>();
  options.poll_interval = Seconds(fields["poll_interval"].cast<double>());
  return options;
}

// `server` is its URL, a token and a file of authorities; empty where there is none.
std::unique_ptr<PipelineRun> OpenPipelineRun(const std::shared_ptr<Monitor>& monitor,
                                             std::array<std::string, 3> server,
                                             py::object collective, const py::dict& rank,
                                             const py::dict& options) {
  auto& [server_url, token, authorities] = server;
  return std::make_unique<PipelineRun>(monitor,
                                       PipelineRun::Options{.server_url = std::move(server_url),
                                                            .token = std::move(token),
                                                            .authorities = std::move(authorities),
                                                            .collective = std::move(collective),
                                                            .pipeline = OptionsOf(rank, options)});
}

template <class Read>
auto OfPlan(Read read) {
  return [read](const PipelineRun& run) -> std::optional<decltype(read(*run.state().plan))> {
    if (!run.state().plan) return std::nullopt;
    return read(*run.state().plan);
  };
}

void BindRun(py::module_& module) {
  py::class_<PipelineRun>(module, "PipelineRun")
      .def(py::init(&OpenPipelineRun), py::arg("monitor"), py::arg("server"), py::arg("collective"),
           py::arg("rank"), py::arg("options"))
      .def("on_instruction_begin", &PipelineRun::OnInstructionBegin, py::arg("name"))
      .def("on_instruction_end", &PipelineRun::OnInstructionEnd, py::arg("name"))
      .def("on_step_end", &PipelineRun::OnStepEnd)
      .def("report_straggler", &PipelineRun::ReportStraggler, py::arg("slowdown"))
      .def("close", &PipelineRun::Close)
      .def_property_readonly("closed", &PipelineRun::closed)
      .def_property_readonly("plan", OfPlan([](const auto& current) { return current.plan; }))
      .def_property_readonly("plan_id", OfPlan([](const auto& current) { return current.id; }))
      .def_property_readonly("plan_version",
                             OfPlan([](const auto& current) { return current.version; }))
      .def_property_readonly("baseline_time", OfPlan([](const auto& current) {
                               return current.baseline_time.count();
                             }))
      .def_property_readonly("baseline_energy", OfPlan([](const auto& current) {
                               return current.baseline_energy.value();
                             }))
      .def_property_readonly(
          "profile",
          [](const PipelineRun& run) -> std::optional<pipeline::PipelineProfile> {
            if (!run.state().profile) return std::nullopt;
            return *run.state().profile;
          })
      .def_property_readonly(
          "profiling_iterations",
          [](const PipelineRun& run) { return run.state().profiling_iterations; })
      .def_property_readonly("clock_changes",
                             [](const PipelineRun& run) { return run.state().clock_changes; })
      .def_property_readonly("trouble", [](const PipelineRun& run) { return run.state().trouble; });
}

}  // namespace

void BindPipeline(py::module_& core) {
  py::module_ module = core.def_submodule("pipeline");
  BindProfile(module);
  BindPlan(module);
  BindPlanner(module);
  BindRun(module);
}

}  // namespace zeus::python
