#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus::replay {

// Time, energy and what they cost.
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

// One batch size at one power limit.
struct LimitRecord {
  Watts limit{};
  Watts power{};  // On average.
  Usage epoch{};
};

// Of the recorded runs of a batch size, in epochs.
struct EpochSpread {
  double mean = 0.0;
  double standard_deviation = 0.0;  // 0 for a single run.
};

// One batch size on one GPU model, at one eta.
struct ReplayArm {
  int batch_size = 0;
  std::vector<std::optional<int>> epochs_to_target{};  // One per recorded run; nullopt: never.
  std::vector<LimitRecord> limits{};                   // Ascending, at least one.
  std::size_t best_limit_index = 0;                    // Of `limits`.
  Watts best_limit{};
  Usage epoch{};            // At the best limit.
  Usage profiling_epoch{};  // Mean over the limits: a slice of the first epoch at each of them.
  Usage full_power_epoch{};

  // Of the recorded runs; nullopt unless all of them arrive within `max_epochs`.
  std::optional<double> MeanEpochs(int max_epochs) const;
  std::optional<EpochSpread> SpreadOfEpochs(int max_epochs) const;
  // How many of the recorded runs arrive within `max_epochs`.
  std::size_t RunsThatArrive(int max_epochs) const;
  // Of a recurrence with nothing but this batch size: a try that fails takes `max_epochs`, and
  // another follows (kMostAttempts) unless none ever arrives.
  double ExpectedEpochs(int max_epochs) const;
};

// A batch size with its cost at each limit worked out.
ReplayArm MakeArm(int batch_size, std::vector<std::optional<int>> epochs_to_target,
                  std::vector<LimitRecord> limits, double eta, Watts max_power);

// A job that can be repeated at will: what its runs take, with each batch size at each power limit.
// Recorded (trace_jobs.h), or computed (catalogue_jobs.h).
struct ReplayJob {
  std::string gpu_model{};  // v100, a40, rtx6000, p100.
  std::string label{};      // deepspeech2, …
  std::string title{};      // As figures have it.
  int max_epochs = 0;
  int default_batch_size = 0;  // One of the arms.
  double eta = 0.5;
  Watts max_power{};
  std::vector<ReplayArm> arms{};       // Ascending, at least one.
  std::vector<std::string> remarks{};  // What was left out, each a sentence.

  std::string name() const { return gpu_model + "/" + label; }
  // The batch size must be one of the job's.
  std::size_t IndexOf(int batch_size) const;
  const ReplayArm& arm(int batch_size) const { return arms[IndexOf(batch_size)]; }

  // Some batch size reaches the target in all of its runs.
  bool HasOracle() const;
  // The arm of least expected cost among those; without one, that of the default batch size.
  const ReplayArm& oracle() const;
  Joules OracleCost() const { return OracleUsage().cost; }
  Usage OracleUsage() const;  // Expected, with the oracle's batch size at its best limit.
  // Expected of a recurrence with the default batch size at its greatest limit, the tries that fail
  // included: what the contender `default` takes on average.
  Usage DefaultUsage() const;

  int power_limits() const;  // |P|, the most that any batch size has.
  int recurrences() const;   // 2 |B| |P|, as the paper evaluates.

  PolicySpec Spec(std::string_view policy, std::uint64_t seed) const;
};

// What one should know of the default before comparing with it, each a sentence: another batch size
// stands in for `usual_default`, it was not recorded at MAXPOWER, it does not always arrive.
std::vector<std::string> RemarksOnDefault(const ReplayJob& job, int usual_default);

}  // namespace zeus::replay
