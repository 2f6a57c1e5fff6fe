#include "zeus/replay/cluster/runtime_clusters.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "zeus/base/random.h"

namespace zeus::replay {
namespace runtime_clusters_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KMeansTest, FindsWhatTheEyeSees) {
  const std::vector<double> values{100, 1, 2, 101, 50, 1.5};
  EXPECT_THAT(KMeans(values, 3), ElementsAre(2, 0, 0, 2, 1, 0));
}

TEST(KMeansTest, EqualValuesShareACluster) {
  const std::vector<double> values{7, 7, 7, 7, 9, 9};
  EXPECT_THAT(KMeans(values, 6), ElementsAre(0, 0, 0, 0, 1, 1));
}

TEST(KMeansTest, NothingHasNoClusters) { EXPECT_THAT(KMeans({}, 6), IsEmpty()); }

// Returns the squared distances from the means of clusters that end before the given positions.
double PartitionCost(const std::vector<double>& sorted, std::vector<std::size_t> ends) {
  ends.push_back(sorted.size());
  double cost = 0;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    double mean = 0;
    for (std::size_t i = first; i < end; ++i) mean += sorted[i] / static_cast<double>(end - first);
    for (std::size_t i = first; i < end; ++i) cost += (sorted[i] - mean) * (sorted[i] - mean);
    first = end;
  }
  return cost;
}

TEST(KMeansTest, NoOtherPartitionIsBetter) {
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> values(14);
    for (double& value : values) value = std::exp(3 * random.Normal());
    std::ranges::sort(values);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t a = 1; a < values.size(); ++a)
      for (std::size_t b = a + 1; b < values.size(); ++b)
        for (std::size_t c = b + 1; c < values.size(); ++c)
          least = std::min(least, PartitionCost(values, {a, b, c}));
    const auto clusters = KMeans(values, 4);
    std::vector<std::size_t> ends;
    for (std::size_t i = 1; i < values.size(); ++i)
      if (clusters[i] != clusters[i - 1]) ends.push_back(i);
    EXPECT_NEAR(PartitionCost(values, ends) / least, 1.0, 1e-9);
  }
}

TEST(AssignWorkloadsTest, ClustersInOrderOfRuntimeBecomeWorkloads) {
  ClusterTraceBuilder builder;
  const auto add = [&builder](const char* group, double start, double runtime) {
    builder.Add(builder.Group(group, {}),
                {.start = Seconds(start), .end = Seconds(start + runtime)});
  };
  add("long", 0, 1000);
  add("short", 0, 10);
  add("short", 1, 30);
  add("brief", 0, 20);
  ClusterTrace trace = std::move(builder).Finish();
  const std::vector<std::string> workloads{"neumf", "resnet50"};
  AssignWorkloads(trace, workloads);

  EXPECT_EQ(trace.groups[0].workload, "resnet50");
  EXPECT_EQ(trace.groups[1].workload, "neumf");
  EXPECT_EQ(trace.groups[2].workload, "neumf");
  EXPECT_DOUBLE_EQ(trace.jobs[0].runtime_ratio, 1.0);
  EXPECT_DOUBLE_EQ(trace.jobs[1].runtime_ratio, 0.5);
  EXPECT_DOUBLE_EQ(trace.jobs[2].runtime_ratio, 1.5);
  EXPECT_DOUBLE_EQ(trace.jobs[3].runtime_ratio, 1.0);
}

}  // namespace runtime_clusters_test
}  // namespace zeus::replay
