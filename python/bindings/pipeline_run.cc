#include "python/bindings/pipeline_run.h"

#include <utility>
#include <vector>

#include "python/bindings/collective.h"
#include "python/bindings/errors.h"
#include "python/bindings/without_gil.h"
#include "zeus/client/remote_plan_service.h"
#include "zeus/optimizer/agreement.h"
#include "zeus/plan/local_plan_service.h"

namespace zeus::python {
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
    // A server that is not there is noticed now, not after the pipeline has been measured.
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
  parts.collective = CollectiveOf(options.collective);
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
  // Neither its thread nor, perhaps, the holder of its locks exists here.
  static auto* const abandoned = new std::vector<std::shared_ptr<Parts>>();
  abandoned->push_back(std::move(parts_));
}

}  // namespace zeus::python
