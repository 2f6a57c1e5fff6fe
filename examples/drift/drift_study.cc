#include "examples/drift/drift_study.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "zeus/base/random.h"

namespace zeus::examples {
namespace {

constexpr const char* kGpuModel = "V100";
constexpr int kMostTries = 20;

const DriftTable::Arm& FindArm(const DriftTable& table, int batch_size) {
  return *std::ranges::find(table.arms, batch_size, &DriftTable::Arm::batch_size);
}

RunResult Train(const DriftTable& table, const PlannedRun& run, int budget, std::size_t repetition,
                Joules before) {
  const DriftTable::Arm& arm = FindArm(table, run.batch_size);
  const std::optional<int> needed =
      arm.epochs[static_cast<std::size_t>(run.recurrence)][repetition];
  RunResult result{.run = run, .converged = needed && *needed <= budget};
  result.epochs = result.converged ? *needed : budget;
  result.cost = result.epochs * arm.epoch_cost;
  result.recurrence_cost = before + result.cost;
  if (result.epochs > 0) result.epoch_cost = arm.epoch_cost;
  return result;
}

}  // namespace

Joules DriftTable::ExpectedCost(std::size_t arm, int slice) const {
  double epochs = 0;
  for (const auto& needed : arms[arm].epochs[static_cast<std::size_t>(slice)]) {
    if (!needed) return Joules(std::numeric_limits<double>::infinity());
    epochs += *needed;
  }
  return epochs / repetitions * arms[arm].epoch_cost;
}

std::size_t DriftTable::BestArm(int slice) const {
  std::size_t best = 0;
  for (std::size_t arm = 1; arm < arms.size(); ++arm)
    if (ExpectedCost(arm, slice) < ExpectedCost(best, slice)) best = arm;
  return best;
}

Result<std::vector<SliceOutcome>> RunPolicy(const DriftTable& table, const PolicySpec& spec) {
  ZEUS_TRY(const std::unique_ptr<BatchSizePolicy> policy, MakePolicy(spec));
  Random random = Random(spec.seed).Fork("repetitions");
  std::vector<SliceOutcome> outcomes;
  for (int slice = 0; slice < table.slices; ++slice) {
    SliceOutcome outcome;
    bool converged = false;
    while (!converged && outcome.tries < kMostTries) {
      const Choice choice =
          policy->Choose({.recurrence = slice, .attempt = outcome.tries, .gpu_model = kGpuModel});
      const PlannedRun run{.recurrence = slice,
                           .attempt = outcome.tries,
                           .gpu_model = kGpuModel,
                           .batch_size = choice.batch_size,
                           .role = choice.role};
      const int budget = policy->EpochBudget(run, FindArm(table, choice.batch_size).epoch_cost);
      const RunResult result =
          Train(table, run, budget, random.Below(static_cast<std::uint64_t>(table.repetitions)),
                outcome.cost);
      policy->Observe(result);
      converged = result.converged;
      outcome.batch_size = choice.batch_size;
      outcome.cost = result.recurrence_cost;
      ++outcome.tries;
    }
    outcomes.push_back(outcome);
  }
  return outcomes;
}

std::vector<SliceOutcome> RunOracle(const DriftTable& table) {
  std::vector<SliceOutcome> outcomes;
  for (int slice = 0; slice < table.slices; ++slice) {
    const std::size_t best = table.BestArm(slice);
    outcomes.push_back({.batch_size = table.arms[best].batch_size,
                        .tries = 1,
                        .cost = table.ExpectedCost(best, slice)});
  }
  return outcomes;
}

}  // namespace zeus::examples
