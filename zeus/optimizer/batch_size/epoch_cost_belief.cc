#include "zeus/optimizer/batch_size/epoch_cost_belief.h"

#include <algorithm>
#include <cmath>

namespace zeus {
namespace {

// One standard deviation of ln cost, per octave to the nearest batch size that is known.
constexpr double kBetween = 0.05;
constexpr double kOutside = 0.12;
constexpr double kFromOne = 0.20;
// With one known: how the logarithm falls and rises, per octave.
constexpr double kFallUpwards = 0.20;
constexpr double kRiseDownwards = 0.25;
// Of a cost that was measured on another GPU model.
constexpr double kTranslated = 0.10;

struct Known {
  int batch_size;
  EpochCostBelief belief;

  double octave() const { return std::log2(batch_size); }
  double cost() const { return std::exp(belief.log_cost); }
};

std::vector<Known> KnownCosts(const EpochCostTable& table, std::string_view gpu_model,
                              std::span<const int> batch_sizes) {
  std::vector<Known> known;
  for (const int batch_size : batch_sizes) {
    if (const auto cost = table.Profiled(gpu_model, batch_size))
      known.push_back({batch_size, {.log_cost = std::log(cost->value()), .profiled = true}});
    else if (const auto translated = table.Translated(gpu_model, batch_size))
      known.push_back(
          {batch_size, {.log_cost = std::log(translated->value()), .sigma = kTranslated}});
  }
  return known;
}

EpochCostBelief Uncertain(double log_cost, double own_sigma, const Known& nearest) {
  return {.log_cost = log_cost, .sigma = std::hypot(own_sigma, nearest.belief.sigma)};
}

EpochCostBelief FromOne(const Known& one, int batch_size) {
  const double octaves = std::log2(batch_size) - one.octave();
  const double slope = octaves > 0 ? kFallUpwards : kRiseDownwards;
  return Uncertain(one.belief.log_cost - slope * octaves, kFromOne * std::abs(octaves), one);
}

// A / b + C through two known batch sizes.
struct CostCurve {
  double per_step = 0.0;
  double rest = 0.0;

  CostCurve(const Known& a, const Known& b) {
    const double a_inverse = 1.0 / a.batch_size;
    per_step = (a.cost() - b.cost()) / (a_inverse - 1.0 / b.batch_size);
    rest = a.cost() - per_step * a_inverse;
  }
  double At(int batch_size) const { return per_step / batch_size + rest; }
};

EpochCostBelief Between(const Known& below, const Known& above, int batch_size) {
  const double octave = std::log2(batch_size);
  const Known& nearest = octave - below.octave() <= above.octave() - octave ? below : above;
  return Uncertain(std::log(CostCurve(below, above).At(batch_size)),
                   kBetween * std::abs(octave - nearest.octave()), nearest);
}

EpochCostBelief Outside(const Known& nearest, const Known& second, int batch_size) {
  const CostCurve curve(nearest, second);
  double cost = curve.At(batch_size);
  // Noise must not make epochs cheaper towards smaller batch sizes, nor free.
  if (curve.per_step <= 0)
    cost = nearest.cost();
  else if (curve.rest <= 0)
    cost = nearest.cost() * nearest.batch_size / batch_size;
  return Uncertain(std::log(cost), kOutside * std::abs(std::log2(batch_size) - nearest.octave()),
                   nearest);
}

}  // namespace

std::vector<std::optional<EpochCostBelief>> BelieveEpochCosts(const EpochCostTable& table,
                                                              std::string_view gpu_model,
                                                              std::span<const int> batch_sizes) {
  const std::vector<Known> known = KnownCosts(table, gpu_model, batch_sizes);
  std::vector<std::optional<EpochCostBelief>> beliefs(batch_sizes.size());
  if (known.empty()) return beliefs;
  for (std::size_t i = 0; i < batch_sizes.size(); ++i) {
    const int batch_size = batch_sizes[i];
    const auto above = std::ranges::lower_bound(known, batch_size, {}, &Known::batch_size);
    if (above != known.end() && above->batch_size == batch_size)
      beliefs[i] = above->belief;
    else if (known.size() == 1)
      beliefs[i] = FromOne(known.front(), batch_size);
    else if (above == known.begin())
      beliefs[i] = Outside(known[0], known[1], batch_size);
    else if (above == known.end())
      beliefs[i] = Outside(known.back(), known[known.size() - 2], batch_size);
    else
      beliefs[i] = Between(*std::prev(above), *above, batch_size);
  }
  return beliefs;
}

}  // namespace zeus
