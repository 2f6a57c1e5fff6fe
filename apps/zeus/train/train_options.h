#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/command.h"
#include "apps/zeus/job/job_source.h"
#include "apps/zeus/profile/progress_pattern.h"
#include "apps/zeus/train/job_flags.h"
#include "apps/zeus/train/limit_search.h"
#include "apps/zeus/train/metric_pattern.h"
#include "apps/zeus/train/placeholders.h"
#include "zeus/base/result.h"
#include "zeus/job/job_spec.h"

namespace zeus::cli {

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
  std::string progress{};
  std::string slice = "5s";
  std::string warmup = "500ms";
  std::string profiles{};
  std::string grace = "10s";
  bool let_finish = false;
  std::string json{};
  std::string html{};
  CarbonOptions carbon{};
  bool quiet = false;
};

// What it means.
struct TrainOptions {
  std::vector<std::string> command{};
  JobSpec spec{};
  JobSourceFlags source{};
  unsigned recurrences = 1;
  unsigned baseline = 0;  // Undisturbed runs of the default, before the recurrences.
  unsigned tries = 20;    // At most, in a recurrence.
  Seconds lease{120};
  Seconds server_wait{30};  // At the start; then it goes without.
  std::optional<MetricPattern> metric{};
  std::string metric_file{};  // Placeholders and all; without either: the socket.
  std::optional<double> learning_rate{};
  LearningRateScaling scaling = LearningRateScaling::kSquareRoot;
  std::optional<std::vector<unsigned>> gpus{};
  Seconds driver_timeout{30};
  LimitPlan limit{};
  std::optional<ProgressPattern> progress{};
  Seconds grace{10};
  bool let_finish = false;
  std::string json{};  // Paths; empty: not wanted.
  std::string html{};
  CarbonOptions carbon{};
  bool quiet = false;
};

// Declares the options on `verb`.
void AddTrainFlags(Verb verb, TrainFlags& flags);

// kInvalidArgument with one sentence when they make no sense.
Result<TrainOptions> Interpret(const TrainFlags& flags, std::vector<std::string> command);

}  // namespace zeus::cli
