#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {

// The description of a recurring job, made once by its owner. It does not change: another
// description is another job.
struct JobSpec {
  std::string id{};      // Unique: at most 200 letters, digits and characters of "-_.:".
  std::string prefix{};  // The beginning of an id that the server generates; else empty.
  std::vector<int> batch_sizes{};
  int default_batch_size = 0;
  double eta = 0.5;                  // Weight of energy in the cost, from 0 (time) to 1 (energy).
  std::optional<double> beta = 2.0;  // Runs stop early at beta times the least cost, if at all.
  double target_metric = 0.5;
  bool higher_is_better = true;
  int max_epochs = 100;
  std::string policy = "knowledge_gradient";
  int pruning_rounds = 2;
  int window = 0;
  double prior_mean = 0.0;
  double prior_precision = 0.0;
  int explorations = 2;
  std::optional<std::uint64_t> seed{};  // nullopt: a seed is drawn, and kept with the job.
  Watts max_power{};                    // MAXPOWER, the sum over all GPUs of a run.
  int number_of_gpus = 1;
  std::string gpu_model{};  // The expected model; each trial has its own.
  // Whether results on one GPU model are translated to the others (Zeus §7).
  bool translate_gpu_models = true;
  std::optional<Seconds> deadline{};  // The time that all tries of a recurrence may take together.
  // A trial without a report or a heartbeat for so long expires.
  Seconds lease = Seconds(900);
  std::map<std::string, std::string> labels{};

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Returns the spec as it is stored: batch sizes ascending and each once. Returns kInvalidArgument
// with the name of the field, as in JSON, whose value is not valid.
Result<JobSpec> Checked(JobSpec spec);

bool ReachesTarget(const JobSpec& spec, double metric);

// Returns whether the text has characters that move the cursor or end a line. Names from clients
// must not: they are shown to other users.
bool HasControlCharacter(std::string_view text);

// Returns eta * energy + (1 - eta) * MAXPOWER * time. MAXPOWER may differ from run to run, with the
// GPU model.
Joules ComputeZeusCost(double eta, Watts max_power, Joules energy, Seconds time);

PolicySpec MakePolicySpec(const JobSpec& spec, std::uint64_t seed);

// Field names are those of docs/formats.md. The reader refuses unknown fields, so that a misspelt
// one is noticed; absent fields get their default.
Json ToJson(const JobSpec& spec);
Result<JobSpec> JobSpecFromJson(const Json& json);

}  // namespace zeus
