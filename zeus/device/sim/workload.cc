#include "zeus/device/sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "zeus/base/text.h"
#include "zeus/device/sim/workload_data.h"

namespace zeus::sim {
namespace {

double MedianEpochs(const EpochsFit& fit, unsigned batch_size) {
  const double batch = batch_size;
  return fit.base * (1.0 + std::pow(batch / fit.large_batch, fit.large_slope)) *
         (1.0 + std::pow(fit.small_batch / batch, fit.small_slope));
}

// Linear in the logarithm of the batch size between the recorded ones, constant beyond them.
double FailureProbability(const WorkloadFits& fits, unsigned batch_size) {
  const auto above =
      std::ranges::lower_bound(fits.failing, batch_size, {}, &FailingShare::batch_size);
  if (above == fits.failing.end()) return fits.failing.back().share;
  if (above == fits.failing.begin() || above->batch_size == batch_size) return above->share;
  const FailingShare& below = *(above - 1);
  const double position = std::log(static_cast<double>(batch_size) / below.batch_size) /
                          std::log(static_cast<double>(above->batch_size) / below.batch_size);
  return std::lerp(below.share, above->share, position);
}

double NormalProbabilityAbove(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

// The mean of max(1, round(X)), ln X normal: 1 + the sum over k >= 1 of P(X >= k + 1/2).
double MeanOfRounded(double median, double spread) {
  // Rounding changes nothing in the mean of a spread-out distribution.
  constexpr double kRoundingMatters = 50.0;
  if (median > kRoundingMatters) return median * std::exp(spread * spread / 2.0);
  const auto last = static_cast<unsigned>(std::ceil(median * std::exp(8.0 * spread)));
  double mean = 1.0;
  for (unsigned k = 1; k <= last; ++k)
    mean += NormalProbabilityAbove(std::log((k + 0.5) / median) / spread);
  return mean;
}

}  // namespace

Result<const Workload*> FindWorkload(std::string_view name) {
  for (const Workload& workload : Workloads())
    if (workload.name == name) return &workload;
  std::string known;
  for (const Workload& workload : Workloads())
    known.append(known.empty() ? "" : ", ").append(workload.name);
  return Error{ErrorCode::kNotFound,
               fmt::format("unknown workload {} (known: {})", Quote(name), known)};
}

std::uint64_t StepsPerEpoch(const Workload& workload, unsigned batch_size) {
  if (batch_size == 0) return 0;
  return (workload.dataset_size + batch_size - 1) / batch_size;
}

std::optional<double> MeanEpochsToTarget(const Workload& workload, unsigned batch_size) {
  const WorkloadFits& fits = *workload.fits;
  if (batch_size == 0 || FailureProbability(fits, batch_size) >= 1.0) return std::nullopt;
  return MeanOfRounded(MedianEpochs(fits.epochs, batch_size), fits.epochs.spread);
}

std::optional<unsigned> DrawEpochsToTarget(const Workload& workload, unsigned batch_size,
                                           Random& random) {
  // Always the same number of draws, so that a failing run does not shift the runs after it.
  const double chance = random.Uniform();
  const double z = random.Normal();
  const WorkloadFits& fits = *workload.fits;
  if (batch_size == 0 || chance < FailureProbability(fits, batch_size)) return std::nullopt;
  const double epochs = MedianEpochs(fits.epochs, batch_size) * std::exp(fits.epochs.spread * z);
  constexpr double kMostEpochs = 1e9;
  return static_cast<unsigned>(std::clamp(std::round(epochs), 1.0, kMostEpochs));
}

}  // namespace zeus::sim
