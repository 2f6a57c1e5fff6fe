#include "studies/paper/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "zeus/replay/catalogue_jobs.h"

namespace zeus::replay::paper {
namespace drift_test {

using ::testing::IsEmpty;

std::vector<DriftCourse> Courses() {
  const auto jobs = CatalogueJobs("v100", 0.5);
  EXPECT_TRUE(jobs.ok());
  auto courses =
      RunDrift(*std::ranges::find(jobs.value(), "bert_sa", &ReplayJob::label), /*seeds=*/10);
  EXPECT_TRUE(courses.ok()) << courses.error().message;
  return std::move(courses).value();
}

TEST(DriftTest, TheBestBatchSizeMovesAndTheSmallestStopsArriving) {
  const DriftCourse oracle = Courses().front();
  EXPECT_LE(oracle.batch_size.front(), 16);
  EXPECT_GE(oracle.batch_size.back(), 64);
  EXPECT_EQ(DriftingEpochs(kDriftSlices - 1, 8).front(), std::nullopt);
  EXPECT_THAT(DriftingEpochs(0, 7), IsEmpty());
}

TEST(DriftTest, AWindowMakesZeusFollow) {
  const Claim claim = DriftClaim(Courses());
  EXPECT_EQ(claim.verdict, Verdict::kReproduced) << claim.ours;
}

TEST(DriftTest, NobodyBeatsTheOracle) {
  const std::vector<DriftCourse> courses = Courses();
  double least = 0.0;
  for (const double cost : courses.front().cost) least += cost;
  for (const DriftCourse& course : courses) {
    double sum = 0.0;
    for (const double cost : course.cost) sum += cost;
    EXPECT_GE(sum, least) << course.name;
  }
  EXPECT_EQ(DriftFigure(courses).panels.size(), 3u);
}

}  // namespace drift_test
}  // namespace zeus::replay::paper
