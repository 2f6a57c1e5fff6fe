#pragma once

#include <memory>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {

// The policies of a job, as they are stored in Job::policy_state: one policy for all GPU models,
// which translates between them, or one policy for each model.
class JobPolicy {
 public:
  // Returns kInternal when the stored state is damaged.
  static Result<JobPolicy> Restore(const Job& job);

  // Returns the policy for a GPU model; makes a new one for a model that was never used.
  Result<BatchSizePolicy*> For(const std::string& gpu_model);

  Json Save() const;

 private:
  JobPolicy(PolicySpec spec, bool shared) : spec_(std::move(spec)), shared_(shared) {}

  const std::string& Key(const std::string& gpu_model) const;

  PolicySpec spec_;
  bool shared_;
  std::map<std::string, std::unique_ptr<BatchSizePolicy>> policies_{};
};

}  // namespace zeus
