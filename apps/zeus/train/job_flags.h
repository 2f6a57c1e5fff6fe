#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/command.h"
#include "zeus/base/result.h"
#include "zeus/job/job_spec.h"

namespace zeus::cli {

// The description of a recurring job, as typed.
struct JobFlags {
  std::string id{};
  std::string batch_sizes{};
  int default_batch_size = 0;
  double target = 0;
  bool lower_is_better = false;
  double eta = 0.5;
  std::string beta = "2";
  int max_epochs = 100;
  std::string policy = "knowledge_gradient";
  int window = 0;
  std::optional<std::uint64_t> seed{};
  std::string deadline{};
  std::vector<std::string> labels{};
  std::string gpu_model{};
  std::optional<double> max_power{};
  bool separate_gpu_models = false;
};

// Declares the options on `verb`.
void AddJobFlags(Verb verb, JobFlags& flags);

// Without what the devices say, and not yet checked as a whole: zeus::Checked() does that.
// kInvalidArgument with one sentence.
Result<JobSpec> Interpret(const JobFlags& flags);

}  // namespace zeus::cli
