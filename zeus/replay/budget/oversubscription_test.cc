#include "zeus/replay/budget/oversubscription.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "zeus/base/json.h"
#include "zeus/replay/cluster/generator.h"
#include "zeus/report/report.h"

namespace zeus::replay {
namespace oversubscription_test {

using ::testing::HasSubstr;

NamedCurve Curve(std::string workload, double slow) {
  const std::vector<water_filling::CurveSample> samples{
      {.limit = Watts(100), .time = Seconds(slow), .draw = Watts(95), .draw_sigma = Watts(0)},
      {.limit = Watts(200), .time = Seconds(1.02), .draw = Watts(170), .draw_sigma = Watts(0)},
      {.limit = Watts(250), .time = Seconds(1), .draw = Watts(180), .draw_sigma = Watts(0)}};
  return {.name = workload,
          .workload = workload,
          .curve = std::make_shared<const water_filling::PowerCurve>(
              water_filling::PowerCurve::FromSamples(samples).value())};
}

std::vector<NamedCurve> Curves() { return {Curve("steep", 2.5), Curve("gentle", 1.1)}; }

ClusterTrace Trace() {
  const std::vector<std::string> workloads{"steep", "gentle"};
  return GenerateCluster({.jobs = 200,
                          .groups = 20,
                          .seed = 3,
                          .median_runtime = Seconds(7200),
                          .period = Seconds(86400)},
                         workloads);
}

OversubscriptionOptions Options(water_filling::Resource resource) {
  return {.more = {0, 0.3, 0.6, 1, 2}, .resource = resource, .idle = Watts(40)};
}

Oversubscription Study(const OversubscriptionOptions& options) {
  auto study = StudyOversubscription(Trace(), Curves(), options);
  EXPECT_TRUE(study.ok()) << study.error().message;
  return std::move(study).value();
}

const OversubscriptionRun& RunOf(const Oversubscription& study, BudgetRule rule, double more) {
  for (const OversubscriptionRun& run : study.runs) {
    if (run.rule == rule && run.more == more) return run;
  }
  ADD_FAILURE() << "no such run";
  return study.runs.front();
}

TEST(OversubscriptionTest, WithTheWholeBudgetNobodyIsSlowed) {
  const Oversubscription study = Study(Options(water_filling::Resource::kLimits));
  EXPECT_EQ(study.jobs, 200U);
  EXPECT_GT(study.gpus, 5U);
  for (const BudgetRule rule :
       {BudgetRule::kUncapped, BudgetRule::kUniform, BudgetRule::kWaterFilling}) {
    const OversubscriptionRun& run = RunOf(study, rule, 0);
    EXPECT_NEAR(run.mean_slowdown, 1, 1e-9) << ToText(rule);
    EXPECT_NEAR(run.throughput, 0, 1e-9);
    EXPECT_EQ(run.over, 0);
  }
}

TEST(OversubscriptionTest, WaterFillingKeepsTheBudgetAndSlowsLessThanAUniformCap) {
  for (const auto resource : {water_filling::Resource::kLimits, water_filling::Resource::kDrawn}) {
    const Oversubscription study = Study(Options(resource));
    double before = 1;
    for (const double more : {0.3, 0.6, 1.0}) {
      const OversubscriptionRun& ours = RunOf(study, BudgetRule::kWaterFilling, more);
      const OversubscriptionRun& uniform = RunOf(study, BudgetRule::kUniform, more);
      EXPECT_LE(ours.mean_slowdown, uniform.mean_slowdown + 1e-9) << more;
      EXPECT_GE(ours.mean_slowdown, before - 1e-6) << more;
      EXPECT_EQ(ours.over, 0) << more;
      EXPECT_LE(ours.highest_draw, ours.budget) << more;
      EXPECT_EQ(ours.short_of_watts, 0) << more;
      before = ours.mean_slowdown;
    }
  }
}

TEST(OversubscriptionTest, WithoutCapsTheBudgetIsExceededWhenItIsSmall) {
  const Oversubscription study = Study(Options(water_filling::Resource::kDrawn));
  EXPECT_GT(RunOf(study, BudgetRule::kUncapped, 2).over, 0.1);
  EXPECT_NEAR(RunOf(study, BudgetRule::kUncapped, 2).mean_slowdown, 1, 1e-9);
}

TEST(OversubscriptionTest, ABudgetBelowTheLowestLimitsIsSaidToBeShort) {
  const Oversubscription study = Study(Options(water_filling::Resource::kLimits));
  EXPECT_GT(RunOf(study, BudgetRule::kWaterFilling, 2).short_of_watts, 0.5);
}

TEST(OversubscriptionTest, EnergyIsThatOfTheDrawnPower) {
  const Oversubscription study = Study(Options(water_filling::Resource::kLimits));
  for (const OversubscriptionRun& run : study.runs) {
    ASSERT_EQ(run.draw.size(), study.runs.front().draw.size());
    double mean = 0;
    for (const Watts draw : run.draw) {
      EXPECT_LE(draw, run.highest_draw * (1 + 1e-9));
      EXPECT_GE(draw.value(), 40.0 * static_cast<double>(study.gpus) - 1e-6);
      mean += draw.value() / static_cast<double>(run.draw.size());
    }
    EXPECT_GT(run.energy, Watts(mean) * study.span * 0.99);
  }
}

TEST(OversubscriptionTest, FewGpusMakeJobsWaitButNotSlower) {
  OversubscriptionOptions options = Options(water_filling::Resource::kLimits);
  options.gpus = 3;
  const Oversubscription study = Study(options);
  EXPECT_EQ(study.gpus, 3U);
  EXPECT_NEAR(RunOf(study, BudgetRule::kWaterFilling, 0).mean_slowdown, 1, 1e-9);
}

TEST(OversubscriptionTest, ThreadsDoNotChangeTheAnswer) {
  OversubscriptionOptions options = Options(water_filling::Resource::kDrawn);
  const std::string one = ToJson(Study(options)).dump();
  options.threads = 4;
  EXPECT_EQ(ToJson(Study(options)).dump(), one);
}

TEST(OversubscriptionTest, TheReportSaysHowManyFit) {
  const Oversubscription study = Study(Options(water_filling::Resource::kLimits));
  const auto ours = study.MoreAtAccepted(BudgetRule::kWaterFilling);
  const auto uniform = study.MoreAtAccepted(BudgetRule::kUniform);
  ASSERT_TRUE(ours && uniform);
  EXPECT_GT(*ours, *uniform);
  const report::Report report = ToReport(study);
  EXPECT_THAT(report.findings.at(1), HasSubstr("more GPUs fit at a mean slowdown of 5.00 %"));
  EXPECT_THAT(ToText(report, 200), HasSubstr("water-filling"));
  EXPECT_THAT(ToPlainHtml(report), HasSubstr("<svg"));
}

TEST(OversubscriptionTest, OptionsWithoutMeaningAreRefused) {
  const auto refusal = [](auto&& change) {
    OversubscriptionOptions options = Options(water_filling::Resource::kLimits);
    change(options);
    const auto study = StudyOversubscription(Trace(), Curves(), options);
    return study.ok() ? "accepted" : study.error().message;
  };
  EXPECT_THAT(refusal([](auto& it) { it.more = {-0.1}; }), HasSubstr("-0.1 more GPUs per GPU"));
  EXPECT_THAT(refusal([](auto& it) { it.more = {}; }), HasSubstr("no number"));
  EXPECT_THAT(refusal([](auto& it) { it.period = Seconds(0); }), HasSubstr("period"));
  EXPECT_THAT(refusal([](auto& it) { it.accepted = 0.5; }), HasSubstr("accepted slowdown of 0.5"));
  EXPECT_THAT(
      StudyOversubscription(Trace(), {Curve("other", 2)}, Options(water_filling::Resource::kLimits))
          .error()
          .message,
      HasSubstr("no power curve of the workload"));
  EXPECT_FALSE(StudyOversubscription({}, Curves(), Options(water_filling::Resource::kLimits)).ok());
}

}  // namespace oversubscription_test
}  // namespace zeus::replay
