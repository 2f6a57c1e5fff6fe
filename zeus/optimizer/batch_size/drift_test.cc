// Tests of data that drift (Zeus §6.4): a job over 38 slices of data, whose best batch size changes
// on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <string>

#include "zeus/base/random.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {
namespace drift_test {

constexpr int kSlices = 38;
constexpr int kDriftAt = 16;

// From the drift on, large batch sizes learn the data as badly as small ones did before.
double ExpectedEpochs(int batch_size, int slice) {
  const double best = slice < kDriftAt ? 128 : 16;
  return 12 * std::exp(0.15 * std::pow(std::log2(batch_size / best), 2));
}

Joules EpochCost(int batch_size) { return Joules(100 + 400.0 / batch_size); }

struct DriftingJob {
  PolicySpec spec;
  double cost = 0.0;    // Cost of all tries after the drift.
  double oracle = 0.0;  // Cost of the batch size that is best in each slice.

  void Run(std::uint64_t seed) {
    spec.seed = seed;
    const auto policy = MakePolicy(spec).value();
    Random random(seed);
    for (int slice = 0; slice < kSlices; ++slice) {
      const double spent = Recur(*policy, slice, random);
      if (slice < kDriftAt) continue;
      cost += spent;
      oracle += std::ranges::min(spec.batch_sizes | std::views::transform([&](int batch_size) {
                                   return ExpectedEpochs(batch_size, slice) *
                                          EpochCost(batch_size).value();
                                 }));
    }
  }

  double Recur(BatchSizePolicy& policy, int slice, Random& random) const {
    Joules spent{};
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Choice choice =
          policy.Choose({.recurrence = slice, .attempt = attempt, .gpu_model = "V100"});
      const Joules epoch_cost = EpochCost(choice.batch_size);
      RunResult result{.run = {.recurrence = slice,
                               .attempt = attempt,
                               .gpu_model = "V100",
                               .batch_size = choice.batch_size,
                               .role = choice.role},
                       .epoch_cost = epoch_cost};
      const int budget = policy.EpochBudget(result.run, epoch_cost);
      const int needed = static_cast<int>(
          std::lround(ExpectedEpochs(choice.batch_size, slice) * std::exp(0.05 * random.Normal())));
      result.converged = needed <= budget;
      result.epochs = std::min(needed, budget);
      result.cost = result.epochs * epoch_cost;
      spent += result.cost;
      result.recurrence_cost = spent;
      policy.Observe(result);
      if (result.converged) break;
    }
    return spent.value();
  }
};

// The cost after the drift, in units of the oracle's.
double CostAfterDrift(const std::string& policy, int window) {
  DriftingJob job{.spec = {.name = policy,
                           .batch_sizes = {8, 16, 32, 64, 128},
                           .default_batch_size = 64,
                           .window = window}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) job.Run(seed);
  return job.cost / job.oracle;
}

TEST(DriftingDataTest, AWindowLetsZeusLeaveTheOldOptimum) {
  const double with_window = CostAfterDrift("zeus", 4);
  const double without = CostAfterDrift("zeus", 0);
  RecordProperty("with_window", std::to_string(with_window));
  RecordProperty("without", std::to_string(without));
  EXPECT_LT(with_window - 1, 0.8 * (without - 1)) << with_window << ' ' << without;
}

// This policy notices a drift without a window, and a window does not make it worse.
TEST(DriftingDataTest, KnowledgeGradientFollowsWithAndWithoutAWindow) {
  const double zeus = CostAfterDrift("zeus", 4);
  EXPECT_LT(CostAfterDrift("knowledge_gradient", 0), zeus);
  EXPECT_LT(CostAfterDrift("knowledge_gradient", 10), zeus);
}

}  // namespace drift_test
}  // namespace zeus
