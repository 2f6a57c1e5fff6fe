#include "zeus/job/job_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

// The key of the policy for all models. No GPU model has this name.
const std::string kAllModels = "*";

}  // namespace

const std::string& JobPolicy::Key(const std::string& gpu_model) const {
  return shared_ ? kAllModels : gpu_model;
}

Result<JobPolicy> JobPolicy::Restore(const Job& job) {
  JobPolicy restored(MakePolicySpec(job.spec, job.seed), job.spec.translate_gpu_models);
  if (job.policy_state.is_null()) return restored;
  if (!job.policy_state.is_object())
    return Error{ErrorCode::kInternal,
                 fmt::format("what is stored about job {} is damaged", Quote(job.spec.id))};
  for (const auto& [key, state] : job.policy_state.items()) {
    auto policy = RestorePolicy(restored.spec_, state);
    if (!policy.ok())
      return Error{ErrorCode::kInternal, std::move(policy).error().message}.While(
          fmt::format("what is stored about job {} is damaged", Quote(job.spec.id)));
    restored.policies_[key] = std::move(policy).value();
  }
  return restored;
}

Result<BatchSizePolicy*> JobPolicy::For(const std::string& gpu_model) {
  std::unique_ptr<BatchSizePolicy>& policy = policies_[Key(gpu_model)];
  if (!policy) {
    ZEUS_TRY(policy, MakePolicy(spec_));
  }
  return policy.get();
}

Json JobPolicy::Save() const {
  Json json = Json::object();
  for (const auto& [key, policy] : policies_) json[key] = policy->Save();
  return json;
}

Result<JobArms> DescribeArms(const Job& job, const std::string& gpu_model, bool exploring) {
  ZEUS_TRY(JobPolicy policies, JobPolicy::Restore(job));
  const std::string model = gpu_model.empty() ? job.spec.gpu_model : gpu_model;
  ZEUS_TRY(const BatchSizePolicy* policy, policies.For(model));
  return JobArms{.gpu_model = model,
                 .stage = std::string(policy->stage()),
                 .best_batch_size = policy->Best(model),
                 .arms = policy->Beliefs(model),
                 .next = policy->Explain(
                     {.recurrence = job.recurrences, .gpu_model = model, .exploring = exploring})};
}

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
