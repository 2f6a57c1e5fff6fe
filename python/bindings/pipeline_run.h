#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "python/bindings/closeable.h"
#include "python/bindings/monitor.h"
#include "zeus/base/clock.h"
#include "zeus/client/server_calls.h"
#include "zeus/optimizer/collective.h"
#include "zeus/plan/memory_plan_repository.h"
#include "zeus/plan/plan_service.h"
#include "zeus/training/pipeline/pipeline_frequency_optimizer.h"

namespace zeus::python {

// What Python calls a PipelineFrequencyOptimizer: the clocks of this rank's GPUs, with the service
// that plans them. Used with the GIL held, which it lets go of while it works.
class PipelineRun final : public Closeable {
 public:
  struct Options {
    std::string server_url{};  // Empty: plans are made here.
    std::string token{};
    std::string authorities{};
    pybind11::object collective{};  // None for one process alone.
    // Without what follows from the above.
    PipelineOptions pipeline{};
  };

  // Throws Failure, on all ranks if on one of them, when the server cannot be reached.
  PipelineRun(const std::shared_ptr<Monitor>& monitor, Options options);
  ~PipelineRun() override { Close(); }

  void OnInstructionBegin(std::string_view instruction);
  void OnInstructionEnd(std::string_view instruction);
  void OnStepEnd();
  void ReportStraggler(double slowdown);

  // As of the last iteration, also when it is closed.
  struct State {
    std::shared_ptr<const CurrentPlan> plan{};  // Null while the pipeline is measured.
    std::shared_ptr<const pipeline::PipelineProfile> profile{};
    int profiling_iterations = 0;
    std::int64_t clock_changes = 0;
    std::optional<std::string> trouble{};
  };
  const State& state() const { return state_; }

 private:
  // Its members end in reverse order.
  struct Parts {
    std::mutex mutex{};  // The optimiser has one owner, Python may have many threads.
    SystemClock clock{};
    std::shared_ptr<NodeMonitor> monitor{};
    MemoryPlanRepository repository{};
    std::unique_ptr<PlanService> service{};  // Null but on rank 0.
    std::shared_ptr<Collective> collective{};
    std::unique_ptr<PipelineFrequencyOptimizer> optimizer{};

    Status Connect(const Options& options);
  };

  // Waits for the GPU where times are taken.
  void Synchronize();
  // With the optimiser, without the GIL.
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

}  // namespace zeus::python
