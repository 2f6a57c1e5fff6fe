#include "studies/paper/configurations.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "zeus/base/statistics.h"

namespace zeus::replay::paper {
namespace {

Joules Energy(const Configuration& configuration) { return configuration.usage.energy; }
Seconds Time(const Configuration& configuration) { return configuration.usage.time; }

// Returns the configuration of least energy among those that `counts`; `otherwise` if there are
// none.
Configuration LeastEnergy(std::span<const Configuration> configurations,
                          const std::function<bool(const Configuration&)>& counts,
                          const Configuration& otherwise) {
  const Configuration* best = nullptr;
  for (const Configuration& configuration : configurations)
    if (counts(configuration) && (best == nullptr || Energy(configuration) < Energy(*best)))
      best = &configuration;
  return best == nullptr ? otherwise : *best;
}

}  // namespace

std::vector<Configuration> FeasibleConfigurations(const ReplayJob& job) {
  std::vector<Configuration> feasible;
  for (const ReplayArm& arm : job.arms) {
    const std::optional<double> epochs = arm.MeanEpochs(job.max_epochs);
    if (!epochs) continue;
    for (const LimitRecord& record : arm.limits)
      feasible.push_back({.batch_size = arm.batch_size,
                          .limit = record.limit,
                          .power = record.power,
                          .usage = *epochs * record.epoch});
  }
  return feasible;
}

Configuration DefaultConfiguration(const ReplayJob& job) {
  const LimitRecord& record = job.arm(job.default_batch_size).limits.back();
  return {.batch_size = job.default_batch_size,
          .limit = record.limit,
          .power = record.power,
          .usage = job.DefaultUsage()};
}

std::vector<Configuration> ParetoFront(std::span<const Configuration> configurations) {
  std::vector<Configuration> sorted(configurations.begin(), configurations.end());
  std::ranges::stable_sort(sorted, [](const Configuration& a, const Configuration& b) {
    return Time(a) != Time(b) ? Time(a) < Time(b) : Energy(a) < Energy(b);
  });
  std::vector<Configuration> front;
  for (const Configuration& configuration : sorted)
    if (front.empty() || Energy(configuration) < Energy(front.back()))
      front.push_back(configuration);
  return front;
}

const Configuration& CheapestAt(std::span<const Configuration> configurations, double eta,
                                Watts max_power) {
  return *std::ranges::min_element(configurations, {}, [&](const Configuration& configuration) {
    return eta * Energy(configuration) + (1 - eta) * (max_power * Time(configuration));
  });
}

namespace {

// The default batch size at each limit, also if it does not always reach the target: that does not
// depend on the limit.
std::vector<Configuration> DefaultAtEachLimit(const ReplayJob& job) {
  const ReplayArm& arm = job.arm(job.default_batch_size);
  const double epochs = job.DefaultUsage().time / arm.full_power_epoch.time;
  std::vector<Configuration> configurations;
  for (const LimitRecord& record : arm.limits)
    configurations.push_back({.batch_size = arm.batch_size,
                              .limit = record.limit,
                              .power = record.power,
                              .usage = epochs * record.epoch});
  return configurations;
}

}  // namespace

std::optional<ExhaustiveSweep> SweepExhaustively(const ReplayJob& job) {
  const std::vector<Configuration> feasible = FeasibleConfigurations(job);
  if (feasible.empty()) return std::nullopt;
  ExhaustiveSweep sweep{.usual = DefaultConfiguration(job)};
  sweep.best_batch_size = LeastEnergy(
      feasible,
      [&](const Configuration& configuration) { return configuration.limit == job.max_power; },
      sweep.usual);
  const std::vector<Configuration> usual_batch_size = DefaultAtEachLimit(job);
  sweep.best_limit = *std::ranges::min_element(usual_batch_size, {}, Energy);
  sweep.best = LeastEnergy(
      feasible, [](const Configuration&) { return true; }, sweep.usual);
  sweep.fastest = *std::ranges::min_element(feasible, {}, Time);
  return sweep;
}

// --- Valleys ---

namespace {

// The energy of the recorded runs of each batch size that always arrives, at the greatest limit.
std::vector<SampleSummary> EnergyByBatchSize(const ReplayJob& job) {
  std::vector<SampleSummary> energies;
  for (const ReplayArm& arm : job.arms) {
    if (!arm.MeanEpochs(job.max_epochs)) continue;
    std::vector<double> runs;
    for (const std::optional<int>& epochs : arm.epochs_to_target)
      runs.push_back((*epochs * arm.full_power_epoch.energy).value());
    energies.push_back(zeus::Summarize(runs));
  }
  return energies;
}

// Falls, then rises, but for steps against it of less than so many standard errors.
bool HasOneValley(std::span<const SampleSummary> energies, double standard_errors) {
  const auto least = std::ranges::min_element(energies, {}, &SampleSummary::mean);
  for (auto next = energies.begin() + 1; next < energies.end(); ++next) {
    const SampleSummary& here = *(next - 1);
    const double rise = next->mean - here.mean;
    const double error = std::hypot(next->StandardError(), here.StandardError());
    const double against = next <= least ? rise : -rise;
    if (against > standard_errors * error) return false;
  }
  return true;
}

}  // namespace

Valleys FindValleys(std::span<const ReplayJob> jobs) {
  constexpr double kScatter = 2.0;
  Valleys valleys;
  for (const ReplayJob& job : jobs) {
    const std::vector<SampleSummary> energies = EnergyByBatchSize(job);
    std::string& names = HasOneValley(energies, 0.0)        ? valleys.one
                         : HasOneValley(energies, kScatter) ? valleys.one_within_scatter
                                                            : valleys.several;
    names += (names.empty() ? "" : ", ") + job.title;
  }
  return valleys;
}

// --- The cost of profiling ---

ProfilingOverhead OverheadOfProfiling(const ReplayJob& job, Seconds profiling) {
  const ReplayArm& arm = job.arm(job.default_batch_size);
  const double epochs = arm.MeanEpochs(job.max_epochs).value_or(job.max_epochs);
  const Seconds slice = profiling / static_cast<double>(arm.limits.size());
  Usage added;
  for (const LimitRecord& record : arm.limits) {
    // The epochs trained while profiling would otherwise have run at the best limit, so that cost
    // is subtracted.
    const double trained = slice / record.epoch.time;
    added.time += slice - trained * arm.epoch.time;
    added.energy += record.power * slice - trained * arm.epoch.energy;
  }
  return {.energy = added.energy / (epochs * arm.epoch.energy),
          .time = added.time / (epochs * arm.epoch.time)};
}

}  // namespace zeus::replay::paper
