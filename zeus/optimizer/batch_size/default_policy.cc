#include "zeus/optimizer/batch_size/default_policy.h"

#include <fmt/format.h>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {

DefaultPolicy::DefaultPolicy(const PolicySpec& spec) : spec_(spec), ledger_(spec) {}

Choice DefaultPolicy::Choose(const Situation&) {
  return {.batch_size = spec_.default_batch_size, .role = RunRole::kExploiting};
}

Explanation DefaultPolicy::Explain(const Situation&) const {
  return {.choice = {.batch_size = spec_.default_batch_size, .role = RunRole::kExploiting},
          .why = fmt::format("Batch size {} is the default, and the policy of this job always runs "
                             "the default.",
                             spec_.default_batch_size),
          .settled = true,
          .outlook = "There is nothing to learn: the policy of this job always runs the default."};
}

int DefaultPolicy::EpochBudget(const PlannedRun&, Joules) const { return spec_.max_epochs; }

void DefaultPolicy::Observe(const RunResult& result) {
  ledger_.LearnEpochCost(result);
  ledger_.Observe(result, result.cost);
}

void DefaultPolicy::LearnEpochCost(std::string_view gpu_model, int batch_size, Joules cost) {
  ledger_.LearnEpochCost(gpu_model, batch_size, cost);
}

std::optional<Joules> DefaultPolicy::ProfiledEpochCost(std::string_view gpu_model,
                                                       int batch_size) const {
  return ledger_.epoch_costs().Profiled(gpu_model, batch_size);
}

std::vector<ArmBelief> DefaultPolicy::Beliefs(std::string_view gpu_model) const {
  std::vector<ArmBelief> beliefs;
  for (const int batch_size : spec_.batch_sizes) {
    beliefs.push_back(ledger_.Describe(gpu_model, batch_size));
    if (batch_size != spec_.default_batch_size) beliefs.back().state = ArmState::kDropped;
  }
  return beliefs;
}

int DefaultPolicy::Best(std::string_view) const { return spec_.default_batch_size; }

std::string_view DefaultPolicy::stage() const { return "fixed"; }

Json DefaultPolicy::Save() const {
  Json state = NewPolicyState("default");
  ledger_.SaveTo(state);
  return state;
}

Result<DefaultPolicy> DefaultPolicy::Restore(const PolicySpec& spec, const Json& state) {
  DefaultPolicy policy(spec);
  ZEUS_RETURN_IF_ERROR(policy.ledger_.RestoreFrom(state));
  return policy;
}

}  // namespace zeus
