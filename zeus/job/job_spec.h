#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {

// What a recurring job is, as its owner describes it once. It does not change: a job that is
// described differently is another job.
struct JobSpec {
  std::string id{};      // Unique; letters, digits and -_.: only, at most 200.
  std::string prefix{};  // What the id began with when the server made it up; else empty.
  std::vector<int> batch_sizes{};
  int default_batch_size = 0;
  double eta = 0.5;                  // 0: time is what counts; 1: energy is.
  std::optional<double> beta = 2.0;  // Early stop at beta * the least cost; nullopt: never.
  double target_metric = 0.5;
  bool higher_is_better = true;
  int max_epochs = 100;
  std::string policy = "knowledge_gradient";
  int pruning_rounds = 2;
  int window = 0;
  double prior_mean = 0.0;
  double prior_precision = 0.0;
  int explorations = 2;
  std::optional<std::uint64_t> seed{};  // nullopt: one is drawn, and kept with the job.
  Watts max_power{};                    // MAXPOWER: of all GPUs of a run together.
  int number_of_gpus = 1;
  std::string gpu_model{};  // Where runs are expected; each run says where it really is.
  // Beliefs of one GPU model serve the others too (Zeus §7); false: each model learns on its own.
  bool translate_gpu_models = true;
  std::optional<Seconds> deadline{};  // Of a recurrence, its tries together.
  // A run that is silent for so long is taken for dead. Reports and heartbeats are signs of life.
  Seconds lease = Seconds(900);
  std::map<std::string, std::string> labels{};

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// The spec as it is stored: batch sizes ascending and each once. kInvalidArgument with the name of
// the field (as in JSON) that makes no sense.
Result<JobSpec> Checked(JobSpec spec);

bool ReachesTarget(const JobSpec& spec, double metric);

// MAXPOWER may differ from run to run, with the GPU model.
Joules ZeusCostOf(double eta, Watts max_power, Joules energy, Seconds time);

PolicySpec PolicySpecOf(const JobSpec& spec, std::uint64_t seed);

// Field names as in docs/formats.md. FromJson() refuses unknown fields, so that a misspelt one is
// noticed, and gives absent ones their default.
Json ToJson(const JobSpec& spec);
Result<JobSpec> JobSpecFromJson(const Json& json);

}  // namespace zeus
