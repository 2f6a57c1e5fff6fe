#include "zeus/replay/paper/sensitivity.h"

namespace zeus::replay::paper {
namespace {

using Amount = double (*)(const ReplaySummary&);

RatioOf CumulativeOf(const WorkloadResults& whole, Amount amount) {
  return [&whole, amount](const WorkloadResults& variant, std::size_t workload) {
    double usual = 0.0;
    for (const ReplaySummary& seed : whole.workloads[workload].seeds) usual += amount(seed);
    usual /= static_cast<double>(whole.workloads[workload].seeds.size());
    std::vector<double> ratios;
    for (const ReplaySummary& seed : variant.workloads[workload].seeds)
      ratios.push_back(amount(seed) / usual);
    return ratios;
  };
}

}  // namespace

RatioOf CumulativeEnergyOf(const WorkloadResults& whole) {
  return CumulativeOf(whole, [](const ReplaySummary& seed) { return seed.usage.energy.value(); });
}

RatioOf CumulativeTimeOf(const WorkloadResults& whole) {
  return CumulativeOf(whole, [](const ReplaySummary& seed) { return seed.usage.time.count(); });
}

RatioOf ImprovementOf(double ReplaySummary::*figure) {
  return [figure](const WorkloadResults& variant, std::size_t workload) {
    std::vector<double> factors;
    for (const ReplaySummary& seed : variant.workloads[workload].seeds)
      factors.push_back(1.0 / (seed.*figure));
    return factors;
  };
}

std::vector<double> GeometricMeans(const WorkloadResults& variant, const RatioOf& ratio) {
  std::vector<std::vector<double>> ratios;
  for (std::size_t i = 0; i < variant.workloads.size(); ++i) ratios.push_back(ratio(variant, i));
  std::vector<double> means;
  for (std::size_t seed = 0; seed < ratios.front().size(); ++seed) {
    std::vector<double> values;
    for (const std::vector<double>& workload : ratios) values.push_back(workload[seed]);
    means.push_back(GeometricMean(values));
  }
  return means;
}

}  // namespace zeus::replay::paper
