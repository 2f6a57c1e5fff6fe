#include "studies/paper/motivation_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "studies/paper/configurations.h"
#include "studies/paper/drawing.h"
#include "studies/paper/testing/made_job.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/testing/trace_directory.h"

namespace zeus::replay::paper {
namespace motivation_figures_test {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const report::Series& Named(const report::Panel& panel, std::string_view name) {
  const auto found = std::ranges::find(panel.series, name, &report::Series::name);
  EXPECT_NE(found, panel.series.end()) << name;
  return *found;
}

TEST(ConfigurationsTest, ABatchSizeThatDoesNotAlwaysArriveIsNotFeasible) {
  const auto feasible = FeasibleConfigurations(MadeJob());
  ASSERT_EQ(feasible.size(), 6u);
  EXPECT_EQ(feasible.back().batch_size, 32);
  EXPECT_EQ(feasible[0].usage.time, Seconds(4 * 150));
  EXPECT_EQ(feasible[2].usage.energy, Joules(3 * 110 * 90));  // 2 and 4 epochs are 3 on average.
}

// (s, J): 8: (600, 54000), (400, 64000); 16: (330, 29700), (270, 43200); 32: (600, 54000),
// (360, 57600).
TEST(ConfigurationsTest, TheFrontHoldsWhatNothingBeats) {
  const auto front = ParetoFront(FeasibleConfigurations(MadeJob()));
  ASSERT_EQ(front.size(), 2u);
  EXPECT_EQ(front[0].usage.time, Seconds(270));
  EXPECT_EQ(front[1].usage.energy, Joules(29700));
}

TEST(ConfigurationsTest, TheSweepFindsTheBestOfEachKnobAndOfBoth) {
  const auto sweep = SweepExhaustively(MadeJob());
  ASSERT_TRUE(sweep.has_value());
  EXPECT_EQ(sweep->best_batch_size.batch_size, 16);
  EXPECT_NEAR(sweep->Saving(sweep->best_batch_size), 1 - 43200.0 / 57600, 1e-12);
  EXPECT_NEAR(sweep->Saving(sweep->best_limit), 1 - 54000.0 / 57600, 1e-12);
  EXPECT_NEAR(sweep->Saving(sweep->best), 1 - 29700.0 / 57600, 1e-12);
  EXPECT_EQ(sweep->fastest.limit, Watts(200));
}

TEST(ConfigurationsTest, AJobThatNeverArrivesHasNothingToSweep) {
  ReplayJob job = MadeJob();
  for (ReplayArm& arm : job.arms) arm.epochs_to_target = {std::nullopt};
  EXPECT_FALSE(SweepExhaustively(job).has_value());
  for (const report::Figure& figure :
       {SavingsFigure(std::vector{job}), TradeoffFigure(job), BatchSizeFigure(job),
        EtaFrontFigure(job), LimitsFigure(std::vector{job})})
    EXPECT_FALSE(figure.panels.empty());
}

TEST(MotivationFiguresTest, BarsAreNormalisedByTheBaseline) {
  const report::Figure figure = SavingsFigure(std::vector{MadeJob()});
  const report::Panel& panel = figure.panels.at(0);
  EXPECT_THAT(panel.x.categories, ElementsAre("DeepSpeech2"));
  EXPECT_THAT(Named(panel, "baseline").y, ElementsAre(1.0));
  EXPECT_THAT(Named(panel, "both").y, ElementsAre(DoubleNear(29700.0 / 57600, 1e-12)));
  EXPECT_THAT(Named(panel, "both").labels, ElementsAre("batch 16, 100 W"));
}

TEST(MotivationFiguresTest, TheBoundsOfTheTradeoffAreAveragePowers) {
  const report::Figure figure = TradeoffFigure(MadeJob());
  const report::Series& busy = Named(figure.panels.at(0), "average power 160 W");
  EXPECT_DOUBLE_EQ(busy.y.at(1) * kMega / (busy.x.at(1) * kKilo), 160.0);
  Named(figure.panels.at(0), "average power 90 W");
}

// Each line of constant cost touches the front at its own optimum and has no configuration below.
TEST(MotivationFiguresTest, LinesOfConstantCostEnvelopTheFront) {
  const ReplayJob job = MadeJob();
  const report::Figure figure = EtaFrontFigure(job);
  const auto feasible = FeasibleConfigurations(job);
  int lines = 0;
  for (const report::Series& line : figure.panels.at(0).series) {
    if (line.role != "cost") continue;
    ++lines;
    ASSERT_EQ(line.x.size(), 2u);
    for (const Configuration& configuration : feasible) {
      const double x = configuration.usage.time.count() / kKilo;
      const double y = configuration.usage.energy.value() / kMega;
      const double dx = line.x[1] - line.x[0];
      const double dy = line.y[1] - line.y[0];
      const bool upright = dx == 0.0;
      EXPECT_GE(upright ? x - line.x[0] : y - (line.y[0] + dy / dx * (x - line.x[0])), -1e-9)
          << line.name;
    }
  }
  EXPECT_EQ(lines, 6);
}

TEST(MotivationFiguresTest, RunsOfABatchSizeGiveItsSpread) {
  const report::Figure figure = BatchSizeFigure(MadeJob());
  const report::Series& spread = Named(figure.panels.at(0), "least and most of them");
  EXPECT_THAT(spread.x, ElementsAre(8, 16, 32));
  EXPECT_NEAR(spread.low.at(1) * kMega, 2 * 90 * 160, 1e-6);
  EXPECT_NEAR(spread.high.at(1) * kMega, 4 * 90 * 160, 1e-6);
}

TEST(MotivationFiguresTest, TablesSayWhatIsRecorded) {
  const std::vector<JobsOfGpu> gpus = {{MadeJob()}};
  const report::Table workloads = WorkloadTable(gpus.front());
  ASSERT_EQ(workloads.rows.size(), 1u);
  EXPECT_EQ(workloads.rows[0].size(), workloads.columns.size());
  EXPECT_EQ(workloads.rows[0].at(6).text, "4 from 8 to 64");
  const report::Table hardware = GpuTable(gpus);
  ASSERT_EQ(hardware.rows.size(), 1u);
  EXPECT_THAT(hardware.rows[0].at(3).text, HasSubstr("2 from 100 to 200 W"));
  const report::Table sweep = SweepTable(gpus);
  EXPECT_EQ(sweep.rows.at(0).size(), sweep.columns.size());
}

class PaperTracesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(TraceDirectory() / "summary_train.csv"))
      GTEST_SKIP() << "no traces in " << TraceDirectory()
                   << " (ZEUS_TRACE_DIR names another directory)";
    auto jobs = ReadReplayJobs(TraceDirectory(), "v100", 0.5);
    ASSERT_TRUE(jobs.ok()) << jobs.error().message;
    jobs_ = std::move(jobs).value();
  }

  // The least and the greatest saving over the workloads are so many percent, as printed with one
  // decimal.
  void ExpectRange(Configuration ExhaustiveSweep::*configuration, double least,
                   double greatest) const {
    std::vector<double> savings;
    for (const ReplayJob& job : jobs_) {
      const ExhaustiveSweep sweep = SweepExhaustively(job).value();
      savings.push_back(100 * sweep.Saving(sweep.*configuration));
    }
    constexpr double kRounded = 0.0501;
    EXPECT_NEAR(std::ranges::min(savings), least, kRounded);
    EXPECT_NEAR(std::ranges::max(savings), greatest, kRounded);
  }

  std::vector<ReplayJob> jobs_;
};

TEST_F(PaperTracesTest, AnExhaustiveSweepSavesWhatThePaperSays) {
  ExpectRange(&ExhaustiveSweep::best, 23.8, 74.7);
  ExpectRange(&ExhaustiveSweep::best_limit, 3.0, 31.5);
  // The paper's least is 3.4 %, that of BERT (SA); by the traces ResNet-50 saves less.
  ExpectRange(&ExhaustiveSweep::best_batch_size, 3.0, 65.0);
}

TEST_F(PaperTracesTest, DeepSpeech2HasTheOptimaThatThePaperNames) {
  const ExhaustiveSweep sweep = SweepExhaustively(jobs_.front()).value();
  EXPECT_EQ(sweep.best.batch_size, 32);
  EXPECT_EQ(sweep.best.limit, Watts(100));
  EXPECT_EQ(sweep.fastest.batch_size, 48);
  EXPECT_EQ(sweep.fastest.limit, Watts(250));
}

// A power limit changes neither how many epochs a run takes nor whether it arrives.
TEST(SweepTest, LimitsOfADefaultThatDoesNotAlwaysArriveCount) {
  const auto jobs = CatalogueJobs("v100", 0.5);
  ASSERT_TRUE(jobs.ok());
  const ReplayJob& job = *std::ranges::find(jobs.value(), "shufflenet", &ReplayJob::label);
  ASSERT_FALSE(job.arm(job.default_batch_size).MeanEpochs(job.max_epochs));
  const auto sweep = SweepExhaustively(job);
  ASSERT_TRUE(sweep);
  EXPECT_EQ(sweep->best_limit.batch_size, job.default_batch_size);
  EXPECT_GT(sweep->Saving(sweep->best_limit), 0.2);
}

}  // namespace motivation_figures_test
}  // namespace zeus::replay::paper
