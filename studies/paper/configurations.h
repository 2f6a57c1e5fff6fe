#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zeus/replay/replay_job.h"

// The effect of both knobs on a recorded job when nothing has to be learned (Zeus §2).
namespace zeus::replay::paper {

// A batch size and a power limit, and what a run to the target is expected to take with them.
struct Configuration {
  int batch_size = 0;
  Watts limit{};
  Watts power{};  // On average.
  Usage usage{};
};

// All recorded ones whose batch size always reaches the target; by batch size, then by limit.
std::vector<Configuration> FeasibleConfigurations(const ReplayJob& job);

// The default batch size at the greatest limit.
Configuration DefaultConfiguration(const ReplayJob& job);

// Those that no other one beats in both time and energy; from the fastest to the most frugal.
std::vector<Configuration> ParetoFront(std::span<const Configuration> configurations);

// Returns the configuration of least cost at this eta; there must be one.
const Configuration& CheapestAt(std::span<const Configuration> configurations, double eta,
                                Watts max_power);

// The best configurations that trying everything finds.
struct ExhaustiveSweep {
  Configuration usual{};            // The default batch size and limit.
  Configuration best_batch_size{};  // Uses the least energy at the greatest limit.
  Configuration best_limit{};       // Uses the least energy with the default batch size.
  Configuration best{};             // Uses the least energy of all.
  Configuration fastest{};

  // The share of the default's energy that is saved.
  double Saving(const Configuration& configuration) const {
    return 1.0 - configuration.usage.energy / usual.usage.energy;
  }
};

// nullopt when no batch size always reaches the target.
std::optional<ExhaustiveSweep> SweepExhaustively(const ReplayJob& job);

// Names the jobs whose energy at the greatest power limit falls and then rises with the batch size,
// counting only batch sizes that always arrive. Returns titles, separated by commas; empty when
// there is none.
struct Valleys {
  std::string one{};
  std::string one_within_scatter{};  // But for steps of less than two standard errors.
  std::string several{};
};
Valleys FindValleys(std::span<const ReplayJob> jobs);

// The overhead of profiling power limits on a whole run, as shares of that run at the best limit.
struct ProfilingOverhead {
  double energy = 0.0;
  double time = 0.0;
};

// With the default batch size, `profiling` in equal parts at each of its limits (Zeus §4.2, §6.5).
ProfilingOverhead OverheadOfProfiling(const ReplayJob& job, Seconds profiling);

}  // namespace zeus::replay::paper
