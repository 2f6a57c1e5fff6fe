#pragma once

#include <functional>
#include <vector>

#include "zeus/replay/paper/study.h"

// Variants of zeus compared with it, seed by seed.
namespace zeus::replay::paper {

// By seed: one workload of a variant, of what it is compared with.
using RatioOf =
    std::function<std::vector<double>(const WorkloadResults& variant, std::size_t workload)>;

// Of the mean over the seeds of `whole`, which must outlive it. Energy and time of all recurrences.
RatioOf CumulativeEnergyOf(const WorkloadResults& whole);
RatioOf CumulativeTimeOf(const WorkloadResults& whole);
// The default's, divided by that of the variant.
RatioOf ImprovementOf(double ReplaySummary::*figure);

// By seed: over the workloads.
std::vector<double> GeometricMeans(const WorkloadResults& variant, const RatioOf& ratio);

}  // namespace zeus::replay::paper
