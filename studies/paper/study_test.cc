#include "studies/paper/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "studies/paper/claims.h"
#include "studies/paper/cluster_study.h"
#include "studies/paper/drift.h"
#include "studies/paper/evaluation_figures.h"
#include "studies/paper/paper_report.h"
#include "studies/paper/testing/made_job.h"
#include "zeus/base/testing/sanitized.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/testing/trace_directory.h"
#include "zeus/report/report.h"

namespace zeus::replay::paper {
namespace study_test {

using ::testing::HasSubstr;

using zeus::testing::kSanitized;

constexpr int kSeeds = kSanitized ? 3 : 20;

// Once for all tests: with the traces if they are there, else with the catalogue.
const Study& TheStudy() {
  static const Study study = [] {
    const bool recorded = std::filesystem::exists(TraceDirectory() / "summary_train.csv");
    auto made = RunStudy(
        [recorded](std::string_view gpu_model, double eta) {
          return recorded ? ReadReplayJobs(TraceDirectory(), gpu_model, eta)
                          : CatalogueJobs(gpu_model, eta);
        },
        {.seeds = kSeeds, .threads = 2});
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(made).value();
  }();
  return study;
}

const Claim& Find(const std::vector<Claim>& claims, std::string_view words) {
  const auto found = std::ranges::find_if(
      claims, [&](const Claim& claim) { return claim.claim.find(words) != std::string::npos; });
  EXPECT_NE(found, claims.end()) << words;
  return *found;
}

// Facts that only many seeds show.
class ManySeedsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "too slow with a sanitizer";
  }
};

TEST(EvaluationTest, ResultsDoNotDependOnTheNumberOfThreads) {
  const ReplayJob job = MadeJob();
  const std::vector<Match> matches = {{&job, {.name = "zeus"}}, {&job, {.name = "grid"}}};
  const auto one = Evaluate(matches, {.seeds = 7, .threads = 1});
  const auto many = Evaluate(matches, {.seeds = 7, .threads = 8});
  ASSERT_TRUE(one.ok() && many.ok());
  ASSERT_EQ(one.value().size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(one.value()[i].regret, many.value()[i].regret);
    EXPECT_EQ(one.value()[i].regret.size(), 7u);
    EXPECT_EQ(one.value()[i].regret.front().size(), static_cast<std::size_t>(job.recurrences()));
  }
}

TEST(EvaluationTest, AnUnknownContenderIsAnError) {
  const ReplayJob job = MadeJob();
  const std::vector<Match> matches = {{&job, {.name = "luck"}}};
  const auto results = Evaluate(matches, {.seeds = 1});
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(results.error().message, HasSubstr("luck"));
}

TEST(EvaluationTest, QuantilesLieBetweenSortedNeighbours) {
  EXPECT_DOUBLE_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(Quantile({0, 10}, 0.25), 2.5);
  EXPECT_DOUBLE_EQ(Quantile({4}, 0.9), 4);
}

TEST(JudgeTest, ANumberIsReproducedWithinSpreadOrDifferent) {
  EXPECT_EQ(Judge({.paper = 0.3, .ours = {0.3004}, .rounding = 0.0005}), Verdict::kReproduced);
  EXPECT_EQ(Judge({.paper = 0.3, .ours = {0.2, 0.5}, .rounding = 0.0005}), Verdict::kWithinSpread);
  EXPECT_EQ(Judge({.paper = 0.3, .ours = {0.4, 0.5}, .rounding = 0.0005}), Verdict::kDiffers);
  EXPECT_EQ(Both(Verdict::kReproduced, Verdict::kDiffers), Verdict::kDiffers);
}

TEST(StudyTest, AWorkloadThatIsMissingIsNamed) {
  const auto study = RunStudy([](std::string_view, double) { return JobsOfGpu{MadeJob()}; }, {});
  ASSERT_FALSE(study.ok());
  EXPECT_THAT(study.error().message, HasSubstr("bert_qa on a40"));
}

TEST_F(ManySeedsTest, EachPolicySavesEnergyOnEachWorkloadOfThePaper) {
  const report::Figure figure = LastFiveFigure(TheStudy());
  for (const report::Series& bars : figure.panels.at(0).series) {
    if (bars.mark != report::Mark::kBars) continue;
    EXPECT_EQ(bars.x.size(), 6u) << bars.name;
    for (const double energy : bars.y) EXPECT_LT(energy, 1.0) << bars.name;
  }
}

// The paper finds the least energy at 2. We find the same energy at 1.5 and at 2, within the error
// of 1000 seeds, and more at each greater threshold.
TEST_F(ManySeedsTest, NoEarlyStoppingThresholdIsBetterThanTwo) {
  const Claim claim = Find(SensitivityClaims(TheStudy()), "β = 2");
  EXPECT_NE(claim.verdict, Verdict::kDiffers) << claim.ours << "; " << claim.remark;
}

TEST_F(ManySeedsTest, EtaTradesTimeForEnergy) {
  const std::vector<Claim> claims = SensitivityClaims(TheStudy());
  EXPECT_EQ(Find(claims, "improvement of energy rises").verdict, Verdict::kReproduced);
  EXPECT_EQ(Find(claims, "improvement of time falls").verdict, Verdict::kReproduced);
}

TEST_F(ManySeedsTest, KnowledgeGradientHasLessRegretThanZeusOnEachGpu) {
  const Claim claim = Find(PerformanceClaims(TheStudy()), "knowledge_gradient");
  EXPECT_EQ(claim.verdict, Verdict::kReproduced) << claim.ours;
}

TEST_F(ManySeedsTest, TheMeanOfRatiosToItselfIsOne) {
  const report::Figure figure = BetaFigure(TheStudy());
  for (const report::Series& line : figure.panels.at(0).series) {
    const auto two = std::ranges::find(line.x, kUsualBeta) - line.x.begin();
    // The geometric mean of single seeds lies a little below that of means.
    EXPECT_NEAR(line.y.at(static_cast<std::size_t>(two)), 1.0, 0.03) << line.name;
  }
}

TEST(StudyTest, HeatMapsHaveACellForEachConfiguration) {
  const report::Figure figure = ZeusPathsFigure(TheStudy());
  for (const report::Panel& panel : figure.panels) {
    ASSERT_TRUE(panel.heat_map.has_value());
    EXPECT_EQ(panel.heat_map->values.size(), panel.x.categories.size() * panel.y.categories.size());
    const report::Series& path = panel.series.front();
    EXPECT_LT(std::ranges::max(path.x), static_cast<double>(panel.x.categories.size()));
    EXPECT_LT(std::ranges::max(path.y), static_cast<double>(panel.y.categories.size()));
    // Nothing is cheaper than the oracle's choice.
    EXPECT_NEAR(std::ranges::min(panel.heat_map->values,
                                 [](double a, double b) { return std::isnan(b) || a < b; }),
                1.0, 1e-9);
  }
}

class RecordedStudyTest : public ManySeedsTest {
 protected:
  void SetUp() override {
    ManySeedsTest::SetUp();
    if (!std::filesystem::exists(TraceDirectory() / "summary_train.csv"))
      GTEST_SKIP() << "no traces in " << TraceDirectory()
                   << " (ZEUS_TRACE_DIR names another directory)";
  }
};

TEST_F(RecordedStudyTest, ZeusSavesWhatThePaperSaysWithinTheSpreadOfSeeds) {
  const std::vector<Claim> claims = PerformanceClaims(TheStudy());
  for (const char* const words : {"reduces energy", "reduces time", "increases time"}) {
    const Claim& claim = Find(claims, words);
    EXPECT_EQ(claim.verdict, Verdict::kWithinSpread) << claim.claim << ": " << claim.ours;
  }
}

TEST_F(RecordedStudyTest, ZeusDoesAsInTheReference) {
  const Claim claim = ReferenceClaim(TheStudy());
  EXPECT_EQ(claim.verdict, Verdict::kWithinSpread) << claim.ours;
  EXPECT_THAT(claim.paper, HasSubstr("60 figures"));
}

TEST_F(RecordedStudyTest, ZeusHasLessRegretThanGridSearchOnEachSetting) {
  EXPECT_EQ(Find(PerformanceClaims(TheStudy()), "less cumulative regret than grid").verdict,
            Verdict::kReproduced);
}

TEST_F(RecordedStudyTest, EarlyStoppingIsThePartThatZeusBenefitsFromMost) {
  const Claim claim = Find(SensitivityClaims(TheStudy()), "mostly from early stopping");
  EXPECT_EQ(claim.verdict, Verdict::kReproduced) << claim.ours;
}

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

}  // namespace study_test
}  // namespace zeus::replay::paper
