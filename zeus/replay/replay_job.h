#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/replay/input/csv_reader.h"

namespace zeus::replay {

// Time and energy that were used, and their cost (energy and time weighted by eta, in joules).
struct Usage {
  Seconds time{};
  Joules energy{};
  Joules cost{};

  Usage& operator+=(const Usage& other) {
    time += other.time;
    energy += other.energy;
    cost += other.cost;
    return *this;
  }
  friend Usage operator+(Usage a, const Usage& b) { return a += b; }
  friend Usage operator*(double times, const Usage& usage) {
    return {.time = times * usage.time, .energy = times * usage.energy, .cost = times * usage.cost};
  }
};

// Recorded usage of one batch size at one power limit.
struct LimitRecord {
  Watts limit{};
  Watts power{};  // The average over a run.
  Usage epoch{};
};

// The epochs that the recorded runs of a batch size needed.
struct EpochSpread {
  double mean = 0.0;
  double standard_deviation = 0.0;  // 0 for a single run.
};

// One batch size on one GPU model, at one eta.
struct ReplayArm {
  int batch_size = 0;
  // One per recorded run; nullopt: it never reached the target.
  std::vector<std::optional<int>> epochs_to_target{};
  std::vector<LimitRecord> limits{};  // Ascending, at least one.
  std::size_t best_limit_index = 0;   // Index into `limits` of the cheapest one.
  Watts best_limit{};
  Usage epoch{};            // At the best limit.
  Usage profiling_epoch{};  // Mean over the limits: a slice of the first epoch at each of them.
  Usage full_power_epoch{};

  // Mean over the recorded runs; nullopt unless all of them reach the target within `max_epochs`.
  std::optional<double> MeanEpochs(int max_epochs) const;
  std::optional<EpochSpread> SpreadOfEpochs(int max_epochs) const;
  // Returns the number of recorded runs that reach the target within `max_epochs`.
  std::size_t RunsThatArrive(int max_epochs) const;
  // Returns the expected epochs of a recurrence that uses only this batch size. A failed attempt
  // takes `max_epochs`, and up to kMostAttempts are made unless no recorded run ever arrives.
  double ExpectedEpochs(int max_epochs) const;
};

// Makes an arm and computes its cost at each limit.
ReplayArm MakeArm(int batch_size, std::vector<std::optional<int>> epochs_to_target,
                  std::vector<LimitRecord> limits, double eta, Watts max_power);

// A job that can be replayed at will: the usage of its runs for each batch size at each power
// limit. It is recorded (replay_job.h) or computed (replay_job.h).
struct ReplayJob {
  std::string gpu_model{};  // "v100", "a40", "rtx6000" or "p100".
  std::string label{};      // "deepspeech2", …
  std::string title{};      // The label that figures show.
  int max_epochs = 0;
  int default_batch_size = 0;  // One of the arms.
  double eta = 0.5;
  Watts max_power{};
  std::vector<ReplayArm> arms{};       // Ascending, at least one.
  std::vector<std::string> remarks{};  // Sentences about data that was left out.

  std::string name() const { return gpu_model + "/" + label; }
  // Returns the index of a batch size, which must be one of the job's.
  std::size_t FindArmIndex(int batch_size) const;
  const ReplayArm& arm(int batch_size) const { return arms[FindArmIndex(batch_size)]; }

  // Returns whether some batch size reaches the target in all of its runs.
  bool HasOracle() const;
  // Returns the arm with the least expected cost among those; without one, the arm of the default
  // batch size.
  const ReplayArm& oracle() const;
  Joules OracleCost() const { return OracleUsage().cost; }
  // Expected usage of a recurrence with the oracle's batch size at its best limit.
  Usage OracleUsage() const;
  // Expected usage of a recurrence with the default batch size at its greatest limit, failed
  // attempts included: the average of the contender `default`.
  Usage DefaultUsage() const;

  int power_limits() const;  // |P|, the largest number of limits of any batch size.
  int recurrences() const;   // 2 |B| |P|, as in the paper's evaluation.

  PolicySpec Spec(std::string_view policy, std::uint64_t seed) const;
};

// Returns sentences that a reader of comparisons with the default needs to know: another batch size
// stands in for `usual_default`, it was not recorded at MAXPOWER, or it does not always reach the
// target.
std::vector<std::string> RemarksOnDefault(const ReplayJob& job, int usual_default);

// A training job of the paper (Zeus, Table 1) with the names that its rows have in the traces.
struct WorkloadKey {
  std::string_view label;  // Used by commands: "deepspeech2".
  std::string_view title;  // Used by figures: "DeepSpeech2".
  std::string_view dataset;
  std::string_view network;
  std::string_view optimizer;
  double target;
  int max_epochs;
  int default_batch_size;
};

// Returns the workloads in the order of the paper.
std::span<const WorkloadKey> PaperWorkloads();

// Finds a workload by its label. kInvalidArgument lists the labels.
Result<const WorkloadKey*> FindWorkload(std::string_view label);

// Reads the jobs of the Zeus paper (NSDI'23) on one GPU model from its published traces:
// summary_train.csv and summary_power_<GPU model>.csv, also compressed (.xz, .gz, .zst). The traces
// are not part of the repository. The jobs come in the order of PaperWorkloads(), without those
// that have no rows. Bad rows are left out and reported, once per file however often it is read
// with the same `problems`. A batch size that only one of the two files has is left out, and
// ReplayJob::remarks says so. kNotFound when the files are missing or have no rows of any workload.
Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta,
                                              RowProblems& problems);

// As above, but returns an error for bad rows.
Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta);

// Returns the six jobs of the paper computed from the workload catalogue that simulated GPUs run
// (docs/workload-catalogue.md), for users without traces and for GPU models that were never
// recorded. The numbers of epochs are drawn with a fixed seed, so every call returns the same jobs.
// kNotFound lists the models of the catalogue.
Result<std::vector<ReplayJob>> CatalogueJobs(std::string_view gpu_model, double eta);

// Returns the power limits of a model: the lowest one, then steps of 25 W as in the traces, and
// always the greatest one.
std::vector<Watts> CatalogueLimits(const sim::GpuModel& model);

}  // namespace zeus::replay
