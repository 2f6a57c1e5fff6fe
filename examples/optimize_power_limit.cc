// Finds the best power limit while a job trains, and prints how much that saves. The GPUs and the
// time are simulated, so it takes milliseconds; a SystemClock and Discover() make it real.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "zeus/base/quantity_text.h"
#include "zeus/base/stepped_clock.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace {

zeus::Status Run() {
  zeus::SteppedClock clock;
  ZEUS_TRY(const auto* model, zeus::sim::FindGpuModel("V100"));
  ZEUS_TRY(const auto* workload, zeus::sim::FindWorkload("resnet50"));
  auto gpu = std::make_unique<zeus::sim::SimulatedGpu>(clock, *model);
  ZEUS_TRY(const auto load,
           gpu->AttachLoad({.demand = {}, .workload = workload, .batch_size = 256}));
  const auto learn = [&clock, &simulated = *gpu, load] {
    clock.SleepFor(simulated.StepTime(load).value());
  };
  zeus::Node node;
  node.gpus.push_back(std::move(gpu));
  ZEUS_TRY(const auto monitor,
           zeus::NodeMonitor::Open(clock, std::move(node), {.thread = false, .share = false}));
  clock.Run([&] { return monitor->monitor().Step(); });

  zeus::GlobalPowerLimitOptimizer optimizer(*monitor, zeus::ZeusCost(0.5));
  for (int epoch = 0; epoch < 2; ++epoch) {
    optimizer.OnEpochBegin();
    for (int step = 0; step < 1000; ++step) {
      optimizer.OnStepBegin();
      learn();
      optimizer.OnStepEnd();
    }
    optimizer.OnEpochEnd();
  }
  optimizer.OnTrainEnd();

  for (const zeus::ProfilePoint& point : optimizer.profile().points)
    fmt::print("{:>6}: {:.4f} s, {} per step\n", zeus::ToText(point.setting),
               point.time_per_step.count(),
               zeus::WithSigma(point.energy_per_step, point.energy_sigma));
  ZEUS_TRY(const auto savings, optimizer.Savings());
  for (const zeus::SavingsReport& report : savings) fmt::print("{}\n", zeus::ToText(report));
  return zeus::Ok();
}

}  // namespace

int main() {
  const zeus::Status status = Run();
  if (status.ok()) return 0;
  fmt::print(stderr, "optimize_power_limit: {}\n", status.error().message);
  return 1;
}
