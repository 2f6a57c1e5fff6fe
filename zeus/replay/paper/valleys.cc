#include "zeus/replay/paper/valleys.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "zeus/base/statistics.h"

namespace zeus::replay::paper {
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

Valleys ValleysOf(std::span<const ReplayJob> jobs) {
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

}  // namespace zeus::replay::paper
