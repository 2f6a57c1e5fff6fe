#include "zeus/replay/replay_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "zeus/base/statistics.h"
#include "zeus/job/run_rules.h"

// The oracle is the batch size with the least expected cost, mean epochs times the cost of an epoch
// at its best limit, among those that always reach the target: one that sometimes fails has no
// mean. It knows the costs beforehand and explores nothing, so its cost is the unit in which regret
// is counted.

namespace zeus::replay {

std::optional<EpochSpread> ReplayArm::SpreadOfEpochs(int max_epochs) const {
  std::vector<double> values;
  for (const std::optional<int>& epochs : epochs_to_target) {
    if (!epochs || *epochs > max_epochs) return std::nullopt;
    values.push_back(*epochs);
  }
  if (values.empty()) return std::nullopt;
  const SampleSummary summary = Summarize(values);
  return EpochSpread{.mean = summary.mean, .standard_deviation = summary.StandardDeviation()};
}

std::optional<double> ReplayArm::MeanEpochs(int max_epochs) const {
  const auto spread = SpreadOfEpochs(max_epochs);
  if (!spread) return std::nullopt;
  return spread->mean;
}

std::size_t ReplayArm::RunsThatArrive(int max_epochs) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      epochs_to_target,
      [max_epochs](const std::optional<int>& epochs) { return epochs && *epochs <= max_epochs; }));
}

double ReplayArm::ExpectedEpochs(int max_epochs) const {
  if (const auto mean = MeanEpochs(max_epochs)) return *mean;
  const std::size_t arriving = RunsThatArrive(max_epochs);
  if (arriving == 0) return max_epochs;
  double sum = 0;
  for (const std::optional<int>& epochs : epochs_to_target)
    sum += epochs ? std::min(*epochs, max_epochs) : max_epochs;
  const auto runs = static_cast<double>(epochs_to_target.size());
  const double failure = 1 - static_cast<double>(arriving) / runs;
  const double tries = (1 - std::pow(failure, kMostAttempts)) / (1 - failure);
  return tries * sum / runs;
}

ReplayArm MakeArm(int batch_size, std::vector<std::optional<int>> epochs_to_target,
                  std::vector<LimitRecord> limits, double eta, Watts max_power) {
  ReplayArm arm{.batch_size = batch_size,
                .epochs_to_target = std::move(epochs_to_target),
                .limits = std::move(limits)};
  for (std::size_t i = 0; i < arm.limits.size(); ++i) {
    Usage& epoch = arm.limits[i].epoch;
    epoch.cost = eta * epoch.energy + (1 - eta) * (max_power * epoch.time);
    arm.profiling_epoch += (1.0 / static_cast<double>(arm.limits.size())) * epoch;
    if (epoch.cost < arm.limits[arm.best_limit_index].epoch.cost) arm.best_limit_index = i;
  }
  arm.best_limit = arm.limits[arm.best_limit_index].limit;
  arm.epoch = arm.limits[arm.best_limit_index].epoch;
  arm.full_power_epoch = arm.limits.back().epoch;
  return arm;
}

std::size_t ReplayJob::IndexOf(int batch_size) const {
  return static_cast<std::size_t>(
      std::ranges::lower_bound(arms, batch_size, {}, &ReplayArm::batch_size) - arms.begin());
}

bool ReplayJob::HasOracle() const {
  return std::ranges::any_of(
      arms, [this](const ReplayArm& arm) { return arm.MeanEpochs(max_epochs).has_value(); });
}

const ReplayArm& ReplayJob::oracle() const {
  const ReplayArm* best = &arm(default_batch_size);
  double least = std::numeric_limits<double>::infinity();
  for (const ReplayArm& arm : arms) {
    const auto epochs = arm.MeanEpochs(max_epochs);
    if (!epochs || *epochs * arm.epoch.cost.value() >= least) continue;
    least = *epochs * arm.epoch.cost.value();
    best = &arm;
  }
  return *best;
}

Usage ReplayJob::OracleUsage() const {
  const ReplayArm& best = oracle();
  return best.MeanEpochs(max_epochs).value_or(max_epochs) * best.epoch;
}

Usage ReplayJob::DefaultUsage() const {
  const ReplayArm& usual = arm(default_batch_size);
  return usual.ExpectedEpochs(max_epochs) * usual.full_power_epoch;
}

int ReplayJob::power_limits() const {
  std::size_t most = 0;
  for (const ReplayArm& arm : arms) most = std::max(most, arm.limits.size());
  return static_cast<int>(most);
}

int ReplayJob::recurrences() const { return 2 * static_cast<int>(arms.size()) * power_limits(); }

PolicySpec ReplayJob::Spec(std::string_view policy, std::uint64_t seed) const {
  PolicySpec spec{.name = std::string(policy),
                  .default_batch_size = default_batch_size,
                  .max_epochs = max_epochs,
                  .seed = seed};
  for (const ReplayArm& arm : arms) spec.batch_sizes.push_back(arm.batch_size);
  return spec;
}

std::vector<std::string> RemarksOnDefault(const ReplayJob& job, int usual_default) {
  std::vector<std::string> remarks;
  const ReplayArm& arm = job.arm(job.default_batch_size);
  if (job.default_batch_size != usual_default)
    remarks.push_back(fmt::format(
        "{}: batch size {} stands in for the default, {}, of which not all rows are there",
        job.name(), job.default_batch_size, usual_default));
  if (const Watts limit = arm.limits.back().limit; limit < job.max_power)
    remarks.push_back(fmt::format(
        "{}: the default batch size, {}, was not recorded at {:g} W: the default is that at {:g} W",
        job.name(), arm.batch_size, job.max_power.value(), limit.value()));
  const std::size_t arriving = arm.RunsThatArrive(job.max_epochs);
  if (arriving == arm.epochs_to_target.size()) return remarks;
  remarks.push_back(fmt::format(
      "{}: the default batch size, {}, reaches the target in {} of {} recorded runs: what the "
      "default takes {}",
      job.name(), arm.batch_size, arriving, arm.epochs_to_target.size(),
      arriving > 0 ? "counts the tries that fail"
                   : fmt::format("is {} epochs without the target", job.max_epochs)));
  return remarks;
}

}  // namespace zeus::replay
