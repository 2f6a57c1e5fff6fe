#include "zeus/optimizer/batch_size/arm_ledger.h"

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

ArmLedger::ArmLedger(const PolicySpec& spec) : arms_(spec.batch_sizes, ThompsonOptions(spec)) {}

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

Joules ArmLedger::EpochCost(std::string_view gpu_model, int batch_size) const {
  return epoch_costs_.Estimate(gpu_model, batch_size).value_or(Joules(1));
}

std::vector<Joules> ArmLedger::EpochCosts(std::string_view gpu_model,
                                          std::span<const int> batch_sizes) const {
  std::vector<Joules> costs;
  costs.reserve(batch_sizes.size());
  for (const int batch_size : batch_sizes) costs.push_back(EpochCost(gpu_model, batch_size));
  return costs;
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
  ZEUS_TRY(const Json* const arms, FindPart(state, "arms"));
  return arms_.Restore(*arms);
}

}  // namespace zeus
