#include "zeus/replay/history/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"

namespace zeus::replay {
namespace what_if_test {

using ::testing::_;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A job on a V100 whose epochs take 10 s at 100 W and 8 s at 200 W with any batch size; 32 needs 4
// epochs, 64 needs 8, and 128 was stopped.
class HistoryTest : public ::testing::Test {
 protected:
  HistoryTest() {
    history_.spec = {.id = "mine",
                     .batch_sizes = {32, 64, 128, 256},
                     .default_batch_size = 64,
                     .eta = 0.5,
                     .max_epochs = 20,
                     .policy = "zeus",
                     .max_power = Watts(250),
                     .gpu_model = "V100"};
    Run(64, 8, TrialStatus::kConverged);
    Run(32, 4, TrialStatus::kConverged);
    Run(128, 5, TrialStatus::kStopped);
    Run(32, 4, TrialStatus::kConverged);
  }

  // The first epoch is spent on profiling; then half of the epochs run at each limit.
  void Run(int batch_size, int epochs, TrialStatus status) {
    const auto number = static_cast<std::int64_t>(history_.trials.size() + 1);
    Trial trial{.job_id = "mine",
                .number = number,
                .recurrence = number - 1,
                .batch_size = batch_size,
                .gpu_model = "V100",
                .max_power = Watts(250),
                .status = status,
                .epochs = epochs,
                .time = Seconds(9),
                .energy = Joules(1350)};
    Report(trial, 1, Watts(100));
    for (int epoch = 2; epoch <= epochs; ++epoch) {
      const Watts limit = epoch <= epochs / 2 ? Watts(100) : Watts(200);
      const Seconds time(limit == Watts(100) ? 10 : 8);
      trial.time += time;
      trial.energy += limit * time;
      trial.power_limit = limit;
      Report(trial, epoch, limit);
    }
    history_.trials.push_back(trial);
  }

  void Report(const Trial& trial, int epochs, Watts limit) {
    history_.events.push_back({.job_id = "mine",
                               .sequence = static_cast<std::int64_t>(history_.events.size() + 1),
                               .kind = EventKind::kTrialReported,
                               .trial = trial.number,
                               .detail = {{"batch_size", trial.batch_size},
                                          {"epochs", epochs},
                                          {"time_seconds", trial.time.count()},
                                          {"energy_joules", trial.energy.value()},
                                          {"power_limit_watts", limit.value()}}});
  }

  RunHistory history_;
};

TEST_F(HistoryTest, EpochsAreMeasuredAtTheLimitsThatWereSet) {
  const auto measured = MeasureHistory(history_, "");
  ASSERT_TRUE(measured.ok()) << measured.error().message;
  ASSERT_EQ(measured.value().arms.size(), 3u);
  const MeasuredArm& usual = measured.value().arms[1];
  EXPECT_EQ(usual.batch_size, 64);
  EXPECT_THAT(usual.epochs_to_target, ElementsAre(8));
  ASSERT_EQ(usual.limits.size(), 2u);
  EXPECT_EQ(usual.limits[0].epoch.time, Seconds(10));
  EXPECT_EQ(usual.limits[1].power, Watts(200));
  EXPECT_EQ(measured.value().recurrences, 4);
}

TEST_F(HistoryTest, WhatIsNotKnownIsSaid) {
  const auto measured = MeasureHistory(history_, "").value();
  EXPECT_THAT(measured.arms[2].epochs_to_target, ElementsAre(std::nullopt));
  EXPECT_THAT(measured.remarks, Contains(HasSubstr("128 never reached the target")));
  EXPECT_THAT(measured.remarks, Contains(HasSubstr("no run on V100 ended with: 256")));
}

TEST_F(HistoryTest, WithoutEventsTheWholeRunIsTheMeasurement) {
  history_.events.clear();
  const auto measured = MeasureHistory(history_, "").value();
  const Trial& first = history_.trials.front();
  ASSERT_EQ(measured.arms[1].limits.size(), 1u);
  EXPECT_DOUBLE_EQ(measured.arms[1].limits[0].epoch.time.count(), first.time.count() / 8);
}

TEST_F(HistoryTest, RunsOnOtherModelsAreSaidToBeLeftOut) {
  history_.trials[3].gpu_model = "A40";
  const auto answer = Answer(history_, {.contenders = {{.name = "zeus"}}, .seeds = 2}).value();
  EXPECT_EQ(answer.recorded_gpu_model, "V100");
  EXPECT_THAT(answer.unknown,
              Contains(HasSubstr("1 of 4 runs, of 1 recurrences, were on \"A40\"")));
}

TEST_F(HistoryTest, WhatNeverArrivesIsNotComparedAsIfItSaved) {
  for (Trial& trial : history_.trials) trial.status = TrialStatus::kStopped;
  const auto answer =
      Answer(history_, {.contenders = {{.name = "zeus"}, {.name = "default"}}, .seeds = 2}).value();
  const report::Report report = ToReport(answer);
  EXPECT_THAT(report.findings, Contains(HasSubstr("The target is not reached by any policy")));
  EXPECT_TRUE(report.sections.at(0).figures.empty());
  EXPECT_EQ(report.sections.at(0).tables.at(0).rows.at(1).at(0).text, "zeus (fails)");
}

TEST_F(HistoryTest, NoFinishedRunIsNothingToReplay) {
  for (Trial& trial : history_.trials) trial.status = TrialStatus::kFailed;
  const auto answer = Answer(history_, {.contenders = {{.name = "zeus"}}});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kNotFound);
}

TEST_F(HistoryTest, HigherEtaNeverTakesMoreEnergyWithTheBestKnobs) {
  double before = HUGE_VAL;
  for (const double eta : {0.0, 0.5, 1.0}) {
    const auto answer =
        Answer(history_, {.eta = eta, .contenders = {{.name = "oracle"}}, .seeds = 2});
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer.value().best_batch_size, 32);
    const double energy = answer.value().outcomes.at(0).energy.mean;
    EXPECT_LE(energy, before);
    before = energy;
  }
}

TEST_F(HistoryTest, MeasuredLimitsStayAndOthersAreEstimated) {
  const auto measured = MeasureHistory(history_, "").value();
  const sim::GpuModel* const model = CatalogueModel("Tesla V100-PCIE-32GB");
  ASSERT_EQ(model, CatalogueModel("v100"));
  const auto limits = TranslateLimits(measured, measured.arms[1],
                                      {&NearestWorkload(measured, *model), model, model});
  EXPECT_GT(limits.size(), 5u);
  EXPECT_EQ(limits.front().epoch.time, Seconds(10));
  for (std::size_t i = 1; i < limits.size(); ++i) EXPECT_LT(limits[i - 1].limit, limits[i].limit);
}

TEST_F(HistoryTest, AnotherGpuModelIsEstimatedWithARange) {
  const auto answer =
      Answer(history_, {.gpu_model = "a40", .contenders = {{.name = "default"}, {.name = "zeus"}}});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer.value().gpu_model, "A40");
  EXPECT_THAT(answer.value().estimated, Contains(HasSubstr("carried over from V100")));
  const Estimate& energy = answer.value().outcomes.at(1).energy;
  EXPECT_LT(energy.low, energy.high);
  EXPECT_LE(energy.low, energy.mean);
  EXPECT_GE(energy.high, energy.mean);
}

TEST_F(HistoryTest, AGpuThatNobodyKnowsKeepsToWhatWasMeasured) {
  for (Trial& trial : history_.trials) trial.gpu_model = "Abacus";
  const auto answer = Answer(history_, {.contenders = {{.name = "zeus"}}, .seeds = 2});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_THAT(answer.value().estimated, IsEmpty());
  EXPECT_THAT(answer.value().unknown, Contains(HasSubstr("Abacus is not in the built-in")));
  const auto moved = Answer(history_, {.gpu_model = "a40", .contenders = {{.name = "zeus"}}});
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error().code, ErrorCode::kNotSupported);
}

TEST_F(HistoryTest, AnUnknownTargetListsTheModels) {
  const auto answer = Answer(history_, {.gpu_model = "z80", .contenders = {{.name = "zeus"}}});
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("V100"));
}

TEST_F(HistoryTest, ReportAndJsonSayWhatTheAnswerRestsOn) {
  const auto answer =
      Answer(history_, {.eta = 0.8, .contenders = {{.name = "zeus"}}, .seeds = 3}).value();
  const Json json = ToJson(answer);
  EXPECT_EQ(json["recorded"]["recurrences"], 4);
  EXPECT_EQ(json["eta"], 0.8);
  EXPECT_FALSE(json["measured"].empty());
  EXPECT_GT(json["policies"]["zeus"]["energy_joules"]["mean"].get<double>(), 0.0);
  const report::Report report = ToReport(answer);
  EXPECT_THAT(report.remarks, Contains(HasSubstr("Measured. Batch size 64: 1 run")));
  EXPECT_EQ(report.sections.at(0).tables.at(0).rows.size(), 2u);
}

TEST(WhatIfReportTest, UnitsFitTheSize) {
  const auto columns = [](Joules energy, Seconds time) {
    const report::Report report = ToReport({.recorded = {.time = time, .energy = energy}});
    return report.sections.at(0).tables.at(0).columns;
  };
  EXPECT_THAT(columns(Joules(420), Seconds(50)),
              ElementsAre("policy", "recurrences", "energy (J)", "time (s)", "cost (J)", _));
  EXPECT_THAT(columns(Joules(3200), Seconds(600)),
              ElementsAre(_, _, "energy (kJ)", "time (min)", "cost (kJ)", _));
  EXPECT_THAT(columns(Joules(5e6), Seconds(7200)),
              ElementsAre(_, _, "energy (MJ)", "time (h)", "cost (MJ)", _));
  EXPECT_THAT(columns(Joules(5e9), Seconds(1e6)),
              ElementsAre(_, _, "energy (GJ)", "time (d)", "cost (GJ)", _));
}

TEST(WhatIfReportTest, TheLargestNumberOfAColumnDecides) {
  WhatIfAnswer answer{.recorded = {.time = Seconds(10), .energy = Joules(100)}};
  answer.outcomes = {{.contender = "grid", .energy = {.mean = 2e6}, .reached = {.mean = 1}}};
  const report::Table table = ToReport(answer).sections.at(0).tables.at(0);
  EXPECT_EQ(table.columns.at(2), "energy (MJ)");
  EXPECT_THAT(table.rows.at(1).at(2).text, HasSubstr("2.000"));
}

}  // namespace what_if_test
}  // namespace zeus::replay
