#include "zeus/optimizer/batch_size/arm_ledger.h"

#include <algorithm>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {
namespace {

GaussianThompson::Options ThompsonOptions(const PolicySpec& spec) {
  return {.window = spec.window,
          .prior_mean = spec.prior_mean,
          .prior_precision = spec.prior_precision,
          .explorations = spec.explorations};
}

}  // namespace

ArmLedger::ArmLedger(const PolicySpec& spec)
    : batch_sizes_(spec.batch_sizes), arms_(spec.batch_sizes, ThompsonOptions(spec)) {}

void ArmLedger::LearnEpochCost(std::string_view gpu_model, int batch_size, Joules cost) {
  epoch_costs_.LearnOnce(gpu_model, batch_size, cost);
}

void ArmLedger::LearnEpochCost(const RunResult& result) {
  const PlannedRun& run = result.run;
  if (result.epoch_cost)
    LearnEpochCost(run.gpu_model, run.batch_size, *result.epoch_cost);
  else if (result.epochs > 0)
    LearnEpochCost(run.gpu_model, run.batch_size, result.cost / result.epochs);
}

void ArmLedger::Observe(const RunResult& result, Joules cost) {
  const PlannedRun& run = result.run;
  arms_.Observe(run.batch_size, cost / EpochCost(run.gpu_model, run.batch_size), result.converged);
}

std::size_t ArmLedger::ArmIndex(int batch_size) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(batch_sizes_, batch_size) -
                                  batch_sizes_.begin());
}

Joules ArmLedger::EpochCost(std::string_view gpu_model, int batch_size) const {
  const std::span<const Joules> costs = EpochCosts(gpu_model);
  return costs.empty() ? Joules(1) : costs[ArmIndex(batch_size)];
}

std::span<const Joules> ArmLedger::EpochCosts(std::string_view gpu_model) const {
  if (latest_changes_ == epoch_costs_.changes() && latest_model_ == gpu_model) return latest_costs_;
  latest_costs_.clear();
  for (const int batch_size : batch_sizes_) {
    const auto cost = epoch_costs_.Estimate(gpu_model, batch_size);
    if (cost) latest_costs_.push_back(*cost);
  }
  latest_model_ = gpu_model;
  latest_changes_ = epoch_costs_.changes();
  return latest_costs_;
}

ArmBelief ArmLedger::Describe(std::string_view gpu_model, int batch_size) const {
  const CostSamples& samples = arms_.samples(batch_size);
  ArmBelief arm{.batch_size = batch_size,
                .runs = static_cast<int>(samples.count()),
                .converged = static_cast<int>(samples.converged()),
                .epoch_cost = epoch_costs_.Estimate(gpu_model, batch_size),
                .epoch_cost_profiled = epoch_costs_.Profiled(gpu_model, batch_size).has_value()};
  if (samples.count() > 0) {
    arm.state = ArmState::kCandidate;
    arm.epochs = samples.mean();
  }
  if (const auto cost = arms_.Belief(batch_size, EpochCost(gpu_model, batch_size))) {
    arm.cost = cost->mean;
    arm.cost_sigma = cost->sigma;
  }
  return arm;
}

void ArmLedger::SaveTo(Json& state) const {
  state["epoch_costs"] = epoch_costs_.Save();
  state["arms"] = arms_.Save();
}

Status ArmLedger::RestoreFrom(const Json& state) {
  ZEUS_TRY(const Json* const costs, FindPart(state, "epoch_costs"));
  ZEUS_TRY(epoch_costs_, EpochCostTable::Restore(*costs));
  latest_changes_ = -1;  // No table has this count, so the cache is not used again.
  ZEUS_TRY(const Json* const arms, FindPart(state, "arms"));
  return arms_.Restore(*arms);
}

}  // namespace zeus
