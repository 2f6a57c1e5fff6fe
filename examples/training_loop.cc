// Listing 1 of the Zeus paper: a training that stops at its target, finds the best power limit on
// the way, and prints what it used. GPU and time are simulated, so it takes milliseconds.
#include "zeus/training/training_loop.h"

#include <fmt/format.h>

#include <cmath>
#include <ranges>
#include <utility>

#include "zeus/base/quantity_text.h"
#include "zeus/base/stepped_clock.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace {

constexpr unsigned kBatchSize = 1024;

zeus::Status Run() {
  zeus::SteppedClock clock;
  ZEUS_TRY(const auto* model, zeus::sim::FindGpuModel("V100"));
  ZEUS_TRY(const auto* workload, zeus::sim::FindWorkload("shufflenet"));
  auto gpu = std::make_unique<zeus::sim::SimulatedGpu>(clock, *model);
  zeus::sim::LoadSpec load;
  load.workload = workload;
  load.batch_size = kBatchSize;
  ZEUS_TRY(const auto work, gpu->AttachLoad(load));
  const auto learn = [&clock, &simulated = *gpu, work] {
    clock.SleepFor(simulated.StepTime(work).value());
  };
  zeus::Node node;
  node.gpus.push_back(std::move(gpu));
  ZEUS_TRY(const auto monitor,
           zeus::NodeMonitor::Open(clock, std::move(node),
                                   {.cpus = false, .thread = false, .share = false}));
  clock.Run([&] { return monitor->monitor().Step(); });
  const auto train_set = std::views::iota(0U, StepsPerEpoch(*workload, kBatchSize));
  const auto eval_set = std::views::iota(0, 8);

  zeus::GlobalPowerLimitOptimizer optimizer(*monitor, zeus::ZeusCost(0.5));
  zeus::TrainingLoop loop(
      *monitor, {.max_epochs = 100, .target_metric = 0.65, .eta = 0.5, .callbacks = {&optimizer}});
  for (const int epoch : loop.Epochs()) {  // Ends at the target or at max_epochs.
    for ([[maybe_unused]] const auto batch : loop.Batches(train_set)) learn();
    for ([[maybe_unused]] const auto batch : eval_set) learn();
    loop.ReportMetric(1 - std::exp(-0.1 * (epoch + 1)));
  }

  const zeus::TrainingSummary summary = loop.Summary();
  fmt::print("{} after {} epochs: {:.1f} s, {}, cost {}\n", StopReasonName(*summary.reason),
             summary.epochs, summary.amounts.time.count(),
             zeus::WithSigma(summary.amounts.energy, summary.amounts.energy_sigma),
             zeus::WithSigma(*summary.amounts.cost, summary.amounts.cost_sigma));
  ZEUS_TRY(const auto savings, optimizer.Savings());
  for (const zeus::SavingsReport& report : savings) fmt::print("{}\n", ToText(report));
  return zeus::Ok();
}

}  // namespace

int main() {
  const zeus::Status status = Run();
  if (status.ok()) return 0;
  fmt::print(stderr, "training_loop: {}\n", status.error().message);
  return 1;
}
