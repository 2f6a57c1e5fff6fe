#include "zeus/replay/cluster/generator.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace zeus::replay {
namespace generator_test {

using ::testing::HasSubstr;

const std::vector<std::string> kWorkloads{"neumf",   "shufflenet",  "bert_qa",
                                          "bert_sa", "deepspeech2", "resnet50"};

bool SameJobs(const ClusterTrace& a, const ClusterTrace& b) {
  return std::ranges::equal(a.jobs, b.jobs, [](const ClusterJob& x, const ClusterJob& y) {
    return x.start == y.start && x.end == y.end && x.runtime_ratio == y.runtime_ratio;
  });
}

TEST(GeneratorTest, HasTheJobsAndGroupsAskedFor) {
  for (const auto& [jobs, groups] :
       {std::pair{1, 1}, std::pair{10, 10}, std::pair{5000, 40}, std::pair{50001, 333}}) {
    const ClusterTrace trace = GenerateCluster({.jobs = jobs, .groups = groups}, kWorkloads);
    EXPECT_EQ(trace.jobs.size(), static_cast<std::size_t>(jobs));
    EXPECT_EQ(trace.groups.size(), static_cast<std::size_t>(groups));
    for (const ClusterGroup& group : trace.groups) {
      EXPECT_GE(group.job_count, 1U);
      EXPECT_TRUE(std::ranges::is_sorted(trace.GroupJobs(group), {}, &ClusterJob::start));
    }
  }
}

TEST(GeneratorTest, TheSameSeedGivesTheSameClusterAndAnotherSeedAnother) {
  const ClusterSpec spec{.jobs = 2000, .groups = 20, .seed = 7};
  EXPECT_TRUE(SameJobs(GenerateCluster(spec, kWorkloads), GenerateCluster(spec, kWorkloads)));
  EXPECT_FALSE(SameJobs(GenerateCluster(spec, kWorkloads),
                        GenerateCluster({.jobs = 2000, .groups = 20, .seed = 8}, kWorkloads)));
}

TEST(GeneratorTest, SeedsAreExactOrRefused) {
  const auto largest = ParseClusterSpec("seed=9007199254740991");
  ASSERT_TRUE(largest.ok());
  EXPECT_EQ(largest.value().seed, 9007199254740991U);
  EXPECT_THAT(ToText(largest.value()), HasSubstr("seed=9007199254740991,"));
  EXPECT_THAT(ParseClusterSpec("seed=9007199254740993").error().message,
              HasSubstr("seed must be a whole number from 0 to 9007199254740991"));
}

TEST(GeneratorTest, MoreJobsThanMemoryHoldsAreRefusedWithTheLimit) {
  EXPECT_THAT(ParseClusterSpec("jobs=1e9").error().message,
              HasSubstr("jobs must be a whole number from 1 to 50000000"));
}

TEST(GeneratorTest, ATraitIsGivenOnce) {
  EXPECT_EQ(ParseClusterSpec("seed=1,jobs=1000,seed=2").error().message,
            "seed is given twice: give it once");
}

TEST(GeneratorTest, FewGroupsSubmitMostJobs) {
  const ClusterTrace trace = GenerateCluster({.jobs = 100000, .groups = 1000}, kWorkloads);
  std::vector<std::size_t> sizes;
  for (const ClusterGroup& group : trace.groups) sizes.push_back(group.job_count);
  std::ranges::sort(sizes, std::greater<>());
  std::size_t top = 0;
  for (std::size_t i = 0; i < 100; ++i) top += sizes[i];
  EXPECT_GT(top, 45000U) << "a tenth of the groups";
  EXPECT_LT(sizes[500], 50U) << "the median is well below the mean of 100";
}

TEST(GeneratorTest, EveryWorkloadHasGroupsAndRatiosAverageToOne) {
  const ClusterTrace trace = GenerateCluster({.jobs = 60000, .groups = 600}, kWorkloads);
  for (const std::string& workload : kWorkloads) {
    double sum = 0;
    double jobs = 0;
    for (const ClusterGroup& group : trace.groups) {
      if (group.workload != workload) continue;
      for (const ClusterJob& job : trace.GroupJobs(group)) sum += job.runtime_ratio;
      jobs += static_cast<double>(group.job_count);
    }
    ASSERT_GT(jobs, 0) << workload;
    EXPECT_NEAR(sum / jobs, 1.0, 1e-9) << workload;
  }
}

double ShareOfOverlaps(double overlap) {
  const ClusterTrace trace = GenerateCluster(
      {.jobs = 20000, .groups = 50, .overlap = overlap, .median_runtime = Seconds(100)},
      kWorkloads);
  double overlapping = 0;
  for (const ClusterGroup& group : trace.groups) {
    Seconds latest{};
    for (const ClusterJob& job : trace.GroupJobs(group)) {
      overlapping += job.start < latest ? 1 : 0;
      latest = std::max(latest, job.end);
    }
  }
  return overlapping / 20000;
}

TEST(GeneratorTest, JobsOverlapAsOftenAsAskedFor) {
  EXPECT_LT(ShareOfOverlaps(0), 0.001);
  EXPECT_NEAR(ShareOfOverlaps(0.3), 0.3, 0.02);
  EXPECT_GT(ShareOfOverlaps(0.9), 0.85);
}

TEST(GeneratorTest, AGroupThatDoesNotFitIntoThePeriodOverlapsMore) {
  const ClusterTrace trace = GenerateCluster(
      {.jobs = 1000, .groups = 1, .median_runtime = Seconds(3600), .period = Seconds(86400)},
      kWorkloads);
  for (const ClusterJob& job : trace.jobs) {
    EXPECT_LE(job.start, Seconds(86400));
    EXPECT_GT(job.end, job.start);
  }
}

TEST(ClusterSpecTest, ReadsWhatItWrites) {
  const auto spec = ParseClusterSpec("jobs=1200000, groups=6000,seed=3,overlap=0.5");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec.value().jobs, 1200000);
  EXPECT_EQ(spec.value().groups, 6000);
  EXPECT_EQ(spec.value().seed, 3U);
  EXPECT_EQ(spec.value().overlap, 0.5);
  EXPECT_EQ(ToText(ParseClusterSpec(ToText(spec.value())).value()), ToText(spec.value()));
}

TEST(ClusterSpecTest, WhatMakesNoSenseIsNamed) {
  EXPECT_THAT(ParseClusterSpec("colour=3").error().message, HasSubstr("\"colour\" is no trait"));
  EXPECT_THAT(ParseClusterSpec("jobs=2.5").error().message,
              HasSubstr("jobs must be a whole number"));
  EXPECT_THAT(ParseClusterSpec("overlap=2").error().message, HasSubstr("overlap must be a number"));
  EXPECT_THAT(ParseClusterSpec("jobs").error().message, HasSubstr("jobs must be"));
  EXPECT_THAT(ParseClusterSpec("overlap=nan").error().message, HasSubstr("overlap must be"));
  EXPECT_THAT(ParseClusterSpec("jobs=5,groups=6").error().message, HasSubstr("too few"));
}

}  // namespace generator_test
}  // namespace zeus::replay
