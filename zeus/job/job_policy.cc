#include "zeus/job/job_policy.h"

#include <fmt/format.h>

#include <utility>

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
  JobPolicy restored(PolicySpecOf(job.spec, job.seed), job.spec.translate_gpu_models);
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

}  // namespace zeus
