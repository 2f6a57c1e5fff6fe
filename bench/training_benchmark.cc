// Measures what TrainingLoop costs per batch, compared with the same loop without it.
#include <benchmark/benchmark.h>

#include <ranges>

#include "zeus/base/clock.h"
#include "zeus/training/training_loop.h"

namespace zeus {
namespace {

class QuietCallback final : public TrainingCallback {
 public:
  void OnStepBegin() override { benchmark::DoNotOptimize(++steps_); }

 private:
  std::int64_t steps_ = 0;
};

// Runs all iterations in one epoch, with a monitor without devices.
void Train(benchmark::State& state, TrainingOptions options) {
  SystemClock clock;
  EnergyMonitor monitor(clock, {});
  options.max_epochs = 1;
  TrainingLoop loop(monitor, std::move(options));
  for ([[maybe_unused]] const int epoch : loop.Epochs()) {
    for (const auto batch : loop.Batches(std::views::iota(std::int64_t{0}))) {
      benchmark::DoNotOptimize(batch);
      if (!state.KeepRunning()) break;
    }
  }
}

void BM_BareLoop(benchmark::State& state) {
  for (const auto batch : std::views::iota(std::int64_t{0})) {
    benchmark::DoNotOptimize(batch);
    if (!state.KeepRunning()) break;
  }
}
BENCHMARK(BM_BareLoop);

void BM_Batch(benchmark::State& state) { Train(state, {}); }
BENCHMARK(BM_Batch);

void BM_BatchWithACallback(benchmark::State& state) {
  QuietCallback callback;
  Train(state, {.callbacks = {&callback}});
}
BENCHMARK(BM_BatchWithACallback);

void BM_BatchWithACostBound(benchmark::State& state) {
  Train(state, {.cost_bound = Joules(1e30), .eta = 1});
}
BENCHMARK(BM_BatchWithACostBound);

}  // namespace
}  // namespace zeus
