#include "zeus/job/run_rules.h"

#include <algorithm>
#include <vector>

namespace zeus {

PlannedRun Plan(const Situation& situation, const Choice& choice) {
  return {.recurrence = situation.recurrence,
          .attempt = situation.attempt,
          .gpu_model = situation.gpu_model,
          .batch_size = choice.batch_size,
          .role = choice.role};
}

RunBound ComputeBound(const BatchSizePolicy& policy, const PlannedRun& run,
                      std::optional<Joules> epoch_cost, int max_epochs) {
  if (!epoch_cost || *epoch_cost <= Joules(0)) return {.last_epoch = max_epochs};
  const int budget = policy.EpochBudget(run, *epoch_cost);
  return {.begins = budget > 0 || run.attempt + 1 >= kMostAttempts,
          .last_epoch = std::clamp(budget, 1, max_epochs)};
}

RunResult MakeResult(const PlannedRun& run, const RunEnd& end, Joules earlier) {
  return {.run = run,
          .converged = end.converged,
          .epochs = end.epochs,
          .cost = end.cost,
          .recurrence_cost = earlier + end.cost,
          .epoch_cost = end.epoch_cost};
}

bool AnotherTryMayHelp(const BatchSizePolicy& policy, const PlannedRun& run, bool any_converged) {
  if (run.attempt + 1 >= kMostAttempts) return false;
  if (any_converged) return true;
  const std::vector<ArmBelief> arms = policy.Beliefs(run.gpu_model);
  return std::ranges::any_of(
      arms, [](const ArmBelief& arm) { return arm.runs == 0 && arm.state != ArmState::kDropped; });
}

}  // namespace zeus
