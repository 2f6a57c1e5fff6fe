#include "studies/paper/cluster_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "studies/paper/claims.h"
#include "zeus/replay/catalogue_jobs.h"

namespace zeus::replay::paper {
namespace cluster_study_test {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ClusterStudyTest, EachClusterIsAnotherOneAndAllWorkIsTold) {
  const auto jobs = CatalogueJobs("v100", 0.5);
  ASSERT_TRUE(jobs.ok());
  std::atomic<std::int64_t> done{0};
  ClusterStudyOptions options{.clusters = 2, .spec = {.jobs = 6000, .groups = 30}, .threads = 2};
  options.jobs_done = [&done](std::int64_t more) { done += more; };
  const auto study = RunClusterStudy(jobs.value(), options);
  ASSERT_TRUE(study.ok()) << study.error().message;
  ASSERT_THAT(study.value().replays, SizeIs(2));
  EXPECT_EQ(done, CountJobs(options));
  const auto energy = [&](std::size_t replay) {
    return study.value().replays[replay].front().contenders.front().usage.energy;
  };
  EXPECT_NE(energy(0), energy(1));
  for (const Claim& claim : ClusterClaims(study.value())) EXPECT_FALSE(claim.ours.empty());
  EXPECT_THAT(ClusterClaims(study.value())[2].remark, HasSubstr("200 jobs per group"));
}

}  // namespace cluster_study_test
}  // namespace zeus::replay::paper
