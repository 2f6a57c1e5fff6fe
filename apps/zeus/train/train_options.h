#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/commands.h"
#include "apps/zeus/job/job_source.h"
#include "apps/zeus/shift/shift_options.h"
#include "zeus/base/result.h"
#include "zeus/job/job_spec.h"
#include "zeus/session/train_options.h"

namespace zeus::cli {

// The description of a recurring job, as typed.
struct JobFlags {
  std::string id{};
  std::string batch_sizes{};
  int default_batch_size = 0;
  std::optional<double> target{};
  std::optional<int> epochs{};
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

// The command line of `zeus train`, as typed.
struct TrainFlags {
  JobFlags job{};
  JobSourceFlags source{};
  unsigned recurrences = 1;
  unsigned baseline = 0;
  unsigned tries = 20;
  std::string lease = "2min";
  std::string server_wait = "30s";
  std::string metric_regex{};
  std::string metric_file{};
  std::optional<double> learning_rate{};
  std::string scaling = "sqrt";
  bool no_placeholder = false;
  bool may_raise = false;
  std::string gpus{};
  double driver_timeout = 30;
  std::string power_limit = "jit";
  std::string limits{};
  std::optional<double> stride{};
  std::optional<double> max_slowdown{};
  std::string progress{};
  std::string slice = "5s";
  std::string warmup = "500ms";
  std::string profiles{};
  std::string grace = "10s";
  bool let_finish = false;
  std::string json{};
  std::string html{};
  std::string log{};  // A file for a JSON line per event; empty: none.
  CarbonOptions carbon{};
  ShiftFlags shift{};
  bool quiet = false;
  bool slurm = false;
  std::string slurm_options{};
  unsigned at_once = 0;
  unsigned slurm_retries = 0;
  bool no_wait = false;
};

// How recurrences are submitted to Slurm instead of being run here.
struct SlurmLaunch {
  bool wanted = false;
  std::vector<std::string> options{};  // For sbatch.
  unsigned at_once = 0;                // 0: as many as there is room for.
  unsigned retries = 0;
  bool wait = true;
};

// The meaning of the options.
struct TrainInvocation {
  TrainOptions session{};
  std::optional<std::vector<unsigned>> gpus{};
  Seconds driver_timeout{30};  // How long drivers may take to find devices.
  JobSourceFlags source{};
  std::string json{};  // Paths; an empty one is not written.
  std::string html{};
  std::string log{};  // A file for a JSON line per event; empty: none.
  CarbonOptions carbon{};
  std::optional<ShiftInvocation> shift{};
  bool quiet = false;
  SlurmLaunch slurm{};
};

// Declares the options on `verb`.
void AddTrainFlags(Verb verb, TrainFlags& flags);

// kInvalidArgument with one sentence when they make no sense.
Result<TrainInvocation> Interpret(const TrainFlags& flags, std::vector<std::string> command,
                                  WallTime now);

}  // namespace zeus::cli
