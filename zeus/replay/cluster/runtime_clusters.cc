// In one dimension, the clusters of an optimal partition are intervals of the sorted values. So the
// best partition of the first n values into k + 1 clusters is the best over where the last one
// starts, and that place never moves back as n grows: divide and conquer over n needs O(n log n)
// per cluster. Prefix sums give the cost of any interval at once.
#include "zeus/replay/cluster/runtime_clusters.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace zeus::replay {
namespace {

// The different values in ascending order, each with its number of occurrences. Prefix sums make
// the cost of any interval an O(1) operation.
class Weighted {
 public:
  explicit Weighted(std::span<const double> values) {
    std::map<double, double> counts;
    for (const double value : values) ++counts[value];
    // Values are centred on their mean: squares of large numbers would lose small differences.
    const double mean =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    weights_.push_back(0);
    sums_.push_back(0);
    squares_.push_back(0);
    for (const auto& [value, count] : counts) {
      values_.push_back(value);
      const long double centred = value - mean;
      weights_.push_back(weights_.back() + count);
      sums_.push_back(sums_.back() + count * centred);
      squares_.push_back(squares_.back() + count * centred * centred);
    }
  }

  std::size_t size() const { return values_.size(); }
  const std::vector<double>& values() const { return values_; }

  // Returns the sum of squared distances of the values [first, last) from their mean.
  long double Cost(std::size_t first, std::size_t last) const {
    const long double sum = sums_[last] - sums_[first];
    return squares_[last] - squares_[first] - sum * sum / (weights_[last] - weights_[first]);
  }

 private:
  std::vector<double> values_{};
  std::vector<long double> weights_{};
  std::vector<long double> sums_{};
  std::vector<long double> squares_{};
};

// costs[n] is the least cost of the first n values in some number of clusters.
using Costs = std::vector<long double>;

// One step of the dynamic programme: from the least costs with k clusters (`before`) to those with
// k + 1. Fill() computes them, and where the last cluster starts, for n in [low, high], knowing
// that the best start lies in [first, last]. The best start never decreases with n, so divide and
// conquer takes O(n log n) instead of O(n²).
struct Layer {
  const Weighted& values;
  const Costs& before;
  Costs& costs;
  std::vector<std::size_t>& starts;

  void Fill(std::size_t low, std::size_t high, std::size_t first, std::size_t last) {
    if (low > high) return;
    const std::size_t middle = low + (high - low) / 2;
    costs[middle] = std::numeric_limits<long double>::infinity();
    for (std::size_t start = first; start <= std::min(last, middle - 1); ++start) {
      const long double cost = before[start] + values.Cost(start, middle);
      if (cost >= costs[middle]) continue;
      costs[middle] = cost;
      starts[middle] = start;
    }
    Fill(low, middle - 1, first, starts[middle]);
    Fill(middle + 1, high, starts[middle], last);
  }
};

// Returns the value with which each cluster but the first begins, ascending.
std::vector<double> ClusterBounds(const Weighted& values, std::size_t clusters) {
  const std::size_t size = values.size();
  Costs costs(size + 1, 0);
  for (std::size_t n = 1; n <= size; ++n) costs[n] = values.Cost(0, n);
  std::vector<std::vector<std::size_t>> starts(clusters, std::vector<std::size_t>(size + 1, 0));
  for (std::size_t k = 1; k < clusters; ++k) {
    const Costs before = costs;
    Layer{values, before, costs, starts[k]}.Fill(k + 1, size, k, size - 1);
  }
  std::vector<double> bounds;
  std::size_t end = size;
  for (std::size_t k = clusters - 1; k > 0; --k) {
    end = starts[k][end];
    bounds.push_back(values.values()[end]);
  }
  std::ranges::reverse(bounds);
  return bounds;
}

double MeanRuntime(std::span<const ClusterJob> jobs) {
  double sum = 0.0;
  for (const ClusterJob& job : jobs) sum += (job.end - job.start).count();
  return sum / static_cast<double>(jobs.size());
}

}  // namespace

std::vector<std::size_t> KMeans(std::span<const double> values, std::size_t clusters) {
  if (values.empty() || clusters == 0) return {};
  const Weighted weighted(values);
  const std::vector<double> bounds = ClusterBounds(weighted, std::min(clusters, weighted.size()));
  std::vector<std::size_t> assigned;
  assigned.reserve(values.size());
  for (const double value : values)
    assigned.push_back(
        static_cast<std::size_t>(std::ranges::upper_bound(bounds, value) - bounds.begin()));
  return assigned;
}

void AssignWorkloads(ClusterTrace& trace, std::span<const std::string> workloads) {
  std::vector<double> runtimes;
  for (const ClusterGroup& group : trace.groups)
    runtimes.push_back(MeanRuntime(trace.GroupJobs(group)));
  const std::vector<std::size_t> clusters = KMeans(runtimes, workloads.size());
  std::vector<double> sums(workloads.size());
  std::vector<double> jobs(workloads.size());
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    const auto count = static_cast<double>(trace.groups[i].job_count);
    sums[clusters[i]] += runtimes[i] * count;
    jobs[clusters[i]] += count;
  }
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    trace.groups[i].workload = workloads[clusters[i]];
    const double mean = sums[clusters[i]] / jobs[clusters[i]];
    // Jobs without any duration all get the same ratio.
    for (ClusterJob& job : trace.GroupJobs(trace.groups[i]))
      job.runtime_ratio = mean > 0 ? (job.end - job.start).count() / mean : 1.0;
  }
}

}  // namespace zeus::replay
