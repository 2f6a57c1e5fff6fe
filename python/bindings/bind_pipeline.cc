#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "python/bindings/collective.h"
#include "python/bindings/errors.h"
#include "python/bindings/monitor.h"
#include "python/bindings/pipeline_planner.h"
#include "zeus/base/clock.h"
#include "zeus/client/remote_plan_service.h"
#include "zeus/client/server_calls.h"
#include "zeus/optimizer/collective.h"
#include "zeus/plan/local_plan_service.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/plan_service.h"
#include "zeus/training/pipeline/pipeline_frequency_optimizer.h"

namespace zeus::python {

// The object behind Python's PipelineFrequencyOptimizer: the clocks of this rank's GPUs, and the
// service that plans them. Used with the GIL held; it releases the GIL while it works.
class PipelineRun final : public Closeable {
 public:
  struct Options {
    std::string server_url{};  // Empty: this process plans.
    std::string token{};
    std::string authorities{};
    pybind11::object collective{};  // None for a single process.
    // Fields that follow from the ones above are not set.
    PipelineOptions pipeline{};
  };

  // Throws Failure on all ranks if one of them cannot reach the server.
  PipelineRun(const std::shared_ptr<Monitor>& monitor, Options options);
  ~PipelineRun() override { Close(); }

  void OnInstructionBegin(std::string_view instruction);
  void OnInstructionEnd(std::string_view instruction);
  void OnStepEnd();
  void ReportStraggler(double slowdown);

  // State after the last iteration; also available after closing.
  struct State {
    std::shared_ptr<const CurrentPlan> plan{};  // Null while the pipeline is profiled.
    std::shared_ptr<const pipeline::PipelineProfile> profile{};
    int profiling_iterations = 0;
    std::int64_t clock_changes = 0;
    std::optional<std::string> trouble{};
  };
  const State& state() const { return state_; }

 private:
  // Members are destroyed in reverse order.
  struct Parts {
    std::mutex mutex{};  // The optimiser is not thread-safe, but Python may have many threads.
    SystemClock clock{};
    std::shared_ptr<NodeMonitor> monitor{};
    MemoryPlanRepository repository{};
    std::unique_ptr<PlanService> service{};  // Null except on rank 0.
    std::shared_ptr<Collective> collective{};
    std::unique_ptr<PipelineFrequencyOptimizer> optimizer{};

    Status Connect(const Options& options);
  };

  // Waits for the GPU if times are being measured.
  void Synchronize();
  // Calls `action` with the optimiser, without the GIL.
  template <class Action>
  void Do(const Action& action);
  void Refresh(const PipelineFrequencyOptimizer& optimizer);
  void DoClose() override;
  void Abandon() override;

  const std::shared_ptr<Monitor> monitor_;
  const bool watches_stragglers_;
  std::shared_ptr<Parts> parts_;
  State state_;
};

namespace {

constexpr const char* kName = "pipeline frequency optimizer";

}  // namespace

Status PipelineRun::Parts::Connect(const Options& options) {
  SingleProcess alone;
  Agreement ranks(collective ? *collective : static_cast<Collective&>(alone));
  if (!ranks.leader()) return ranks.Together(Ok());
  if (options.server_url.empty()) {
    service = std::make_unique<LocalPlanService>(repository, clock);
    return ranks.Together(Ok());
  }
  CallOptions calls = RemotePlanService::OptionsForSolving(options.server_url);
  calls.token = options.token;
  calls.authorities = options.authorities;
  const auto connect = [&]() -> Status {
    ZEUS_TRY(service, RemotePlanService::Connect(calls, clock));
    // A missing server is noticed now, not after the pipeline has been profiled.
    ZEUS_RETURN_IF_ERROR(service->List("", 1));
    return Ok();
  };
  return ranks.Together(connect());
}

PipelineRun::PipelineRun(const std::shared_ptr<Monitor>& monitor, Options options)
    : Closeable(monitor.get()),
      monitor_(monitor),
      watches_stragglers_(options.pipeline.straggler_threshold.has_value()),
      parts_(std::make_shared<Parts>()) {
  Parts& parts = *parts_;
  parts.monitor = monitor->recording();
  parts.collective = FindCollective(options.collective);
  {
    const WithoutGil released;
    Check(parts.Connect(options));
    PipelineOptions pipeline = std::move(options.pipeline);
    pipeline.collective = parts.collective.get();
    pipeline.service = parts.service.get();
    parts.optimizer =
        std::make_unique<PipelineFrequencyOptimizer>(*parts.monitor, std::move(pipeline));
  }
  Refresh(*parts.optimizer);
}

void PipelineRun::Synchronize() {
  CheckOpen(kName);
  if (watches_stragglers_ || !state_.plan) monitor_->synchronizer()();
}

template <class Action>
void PipelineRun::Do(const Action& action) {
  CheckOpen(kName);
  const std::shared_ptr<Parts> parts = parts_;
  const WithoutGil released;
  const std::lock_guard lock(parts->mutex);
  if (parts->optimizer) action(*parts->optimizer);
}

void PipelineRun::OnInstructionBegin(std::string_view instruction) {
  Synchronize();
  Do([instruction](auto& optimizer) { optimizer.OnInstructionBegin(instruction); });
}

void PipelineRun::OnInstructionEnd(std::string_view instruction) {
  Synchronize();
  Do([instruction](auto& optimizer) { optimizer.OnInstructionEnd(instruction); });
}

void PipelineRun::OnStepEnd() {
  Do([this](auto& optimizer) {
    optimizer.OnStepEnd();
    const pybind11::gil_scoped_acquire acquired;
    Refresh(optimizer);
  });
}

void PipelineRun::ReportStraggler(double slowdown) {
  Do([slowdown](auto& optimizer) { optimizer.ReportStraggler(slowdown); });
}

void PipelineRun::Refresh(const PipelineFrequencyOptimizer& optimizer) {
  if (const CurrentPlan* const plan = optimizer.plan();
      plan != nullptr && (!state_.plan || state_.plan->version != plan->version))
    state_.plan = std::make_shared<CurrentPlan>(*plan);
  if (optimizer.profile() != nullptr && !state_.profile)
    state_.profile = std::make_shared<pipeline::PipelineProfile>(*optimizer.profile());
  state_.profiling_iterations = optimizer.profiling_iterations();
  state_.clock_changes = optimizer.clock_changes();
  const std::optional<Error> trouble = optimizer.trouble();
  state_.trouble = trouble ? std::optional(trouble->message) : std::nullopt;
}

void PipelineRun::DoClose() {
  const std::shared_ptr<Parts> parts = std::move(parts_);
  if (!parts) return;
  const WithoutGil released;
  const std::lock_guard lock(parts->mutex);
  if (!parts->optimizer) return;
  parts->optimizer->OnTrainEnd();
  {
    const pybind11::gil_scoped_acquire acquired;
    Refresh(*parts->optimizer);
  }
  parts->optimizer.reset();
  parts->service.reset();
  parts->monitor.reset();
}

void PipelineRun::Abandon() {
  // In a forked child the thread does not exist, and the holders of locks may not either.
  static auto* const abandoned = new std::vector<std::shared_ptr<Parts>>();
  abandoned->push_back(std::move(parts_));
}

namespace {

PipelineRank ReadRank(const py::dict& fields) {
  const auto number = [&fields](const char* name) { return fields[name].cast<int>(); };
  return {.dp_rank = number("dp_rank"),
          .pp_rank = number("pp_rank"),
          .tp_rank = number("tp_rank"),
          .dp_degree = number("dp_degree"),
          .pp_degree = number("pp_degree"),
          .tp_degree = number("tp_degree")};
}

// Reads the options by their names in zeus.optimizer.pipeline_frequency, which has checked them.
PipelineOptions ReadOptions(const py::dict& rank, const py::dict& fields) {
  PipelineOptions options;
  options.rank = ReadRank(rank);
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

// `server` holds the URL, a token and a file of certificate authorities; each may be empty.
std::unique_ptr<PipelineRun> OpenPipelineRun(const std::shared_ptr<Monitor>& monitor,
                                             std::array<std::string, 3> server,
                                             py::object collective, const py::dict& rank,
                                             const py::dict& options) {
  auto& [server_url, token, authorities] = server;
  return std::make_unique<PipelineRun>(
      monitor, PipelineRun::Options{.server_url = std::move(server_url),
                                    .token = std::move(token),
                                    .authorities = std::move(authorities),
                                    .collective = std::move(collective),
                                    .pipeline = ReadOptions(rank, options)});
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
