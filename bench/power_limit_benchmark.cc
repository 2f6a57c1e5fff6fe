// Measures what the optimiser costs per training step, once it has decided and while it profiles.
#include <benchmark/benchmark.h>

#include <limits>

#include "zeus/optimizer/power_limit/testing/fake_job.h"
#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/testing/simulated_node.h"

namespace zeus {
namespace {

void StepOfAnOptimizerThatIsDone(benchmark::State& state) {
  testing::FakeJob job(testing::TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), {.rule = SliceRule::BySteps()});
  job.Train(optimizer, 1000);
  for (auto _ : state) {
    optimizer.OnStepBegin();
    optimizer.OnStepEnd();
    benchmark::ClobberMemory();
  }
}
BENCHMARK(StepOfAnOptimizerThatIsDone);

// Uses the interface that training uses.
void StepOfAJobThatIsDone(benchmark::State& state) {
  testing::SimulatedNode node({"V100", "V100", "V100", "V100"}, {});
  GlobalPowerLimitOptimizer optimizer(node.monitor());
  while (!optimizer.done()) {
    optimizer.OnStepBegin();
    node.Step();
  }
  TrainingCallback& callback = optimizer;
  for (auto _ : state) {
    callback.OnStepBegin();
    callback.OnStepEnd();
  }
}
BENCHMARK(StepOfAJobThatIsDone);

void StepWhileProfiling(benchmark::State& state) {
  testing::FakeJob job(testing::TypicalStep);
  PowerLimitOptimizer optimizer(
      job.parts(), {.rule = SliceRule::BySteps(0, 0, std::numeric_limits<std::int64_t>::max())});
  for (auto _ : state) {
    optimizer.OnStepBegin();
    optimizer.OnStepEnd();
  }
}
BENCHMARK(StepWhileProfiling);

}  // namespace
}  // namespace zeus
