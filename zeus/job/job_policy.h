#pragma once

#include <memory>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {

// What a job believes, as it is stored: one policy for all GPU models that translates between them,
// or one for each.
class JobPolicy {
 public:
  // kInternal when what is stored cannot be understood.
  static Result<JobPolicy> Restore(const Job& job);

  // That of a model which was never seen is new.
  Result<BatchSizePolicy*> For(const std::string& gpu_model);

  Json Save() const;

 private:
  JobPolicy(PolicySpec spec, bool shared) : spec_(std::move(spec)), shared_(shared) {}

  const std::string& KeyOf(const std::string& gpu_model) const;

  PolicySpec spec_;
  bool shared_;
  std::map<std::string, std::unique_ptr<BatchSizePolicy>> policies_{};
};

}  // namespace zeus
