#include "zeus/job/start_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace start_advice_test {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;

class StartAdviceTest : public ::testing::Test {
 protected:
  CarbonAccounting Open(const std::string& csv, double error = 0) {
    directory_.AddFile("grid.csv", csv);
    return CarbonAccounting::Open(clock_, {.carbon = (directory_.path() / "grid.csv").string(),
                                           .forecast_error = error})
        .value();
  }
  // Clean from the sixth to the ninth hour, and known for a day.
  CarbonAccounting CleanLater(double error = 0) {
    return Open(
        "time,grams_per_kwh\n1681689600,400\n1681711200,100\n1681722000,400\n1681776000,400\n",
        error);
  }
  WallTime now() const { return clock_.WallNow(); }
  StartWish Wish(Seconds within = hours(24)) const {
    return {.finish_by = Later(now(), within), .duration = hours(3), .power = Watts(500)};
  }
  Trial& AddRun(Seconds time, const std::string& model = "V100") {
    const auto number = static_cast<std::int64_t>(trials_.size()) + 1;
    trials_.push_back({.number = number,
                       .recurrence = number - 1,
                       .batch_size = 32,
                       .gpu_model = model,
                       .status = TrialStatus::kConverged,
                       .started_at = now(),
                       .ended_at = now() + hours(1),
                       .time = time,
                       .energy = Watts(200) * time});
    return trials_.back();
  }

  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;  // Begins on 2023-04-17 at midnight, 1681689600.
  std::vector<Trial> trials_;
};

TEST_F(StartAdviceTest, TheHistorySaysHowLongARecurrenceTakes) {
  for (int i = 0; i < 30; ++i) AddRun(Seconds(i < 10 ? 9000 : 1000));  // It became faster.
  AddRun(Seconds(50)).status = TrialStatus::kFailed;
  AddRun(Seconds(60)).shared = true;
  AddRun(Seconds(3000), "A100");
  const auto on_v100 = EstimateRun(trials_, "V100");
  ASSERT_TRUE(on_v100);
  EXPECT_EQ(on_v100->runs, 20);
  EXPECT_EQ(on_v100->duration.mean(), Seconds(1000));
  EXPECT_EQ(on_v100->power, Watts(200));
  EXPECT_EQ(EstimateRun(trials_, "A100")->duration.mean(), Seconds(3000));
  EXPECT_GT(EstimateRun(trials_, "H100")->runs, 1);  // Better than nothing.
  EXPECT_FALSE(EstimateRun({}, "V100"));
}

TEST_F(StartAdviceTest, AdvisesTheCleanHours) {
  const auto accounting = CleanLater(0.1);
  const auto advice = AdviseStart(accounting, Wish(), std::nullopt, now(), now());
  ASSERT_TRUE(advice.ok()) << advice.error().message;
  EXPECT_EQ(advice.value().plan.start, now() + hours(6));
  EXPECT_EQ(advice.value().unit, "g");
  EXPECT_THAT(
      ToSentence(advice.value(), now()),
      HasSubstr("the run starts at 2023-04-17T06:00:00Z, 6.00 h from now: 75 ± 10 % less CO2e"));
  const Json json = ToJson(advice.value());
  EXPECT_EQ(json.at("start_at"), "2023-04-17T06:00:00Z");
  EXPECT_EQ(json.at("reason"), "gain");
  EXPECT_NEAR(json.at("expected").at("gain").get<double>(), 450, 1e-6);
}

TEST_F(StartAdviceTest, WaitingIsCountedFromTheFirstMoment) {
  const auto accounting = CleanLater();
  StartWish wish = Wish();
  wish.finish_by.reset();
  wish.max_wait = hours(2);
  EXPECT_EQ(AdviseStart(accounting, wish, std::nullopt, now(), now()).value().plan.reason,
            ShiftReason::kNothingToGain);
  wish.max_wait = hours(8);
  const WallTime first = now();
  clock_.Advance(hours(1));
  const auto advice = AdviseStart(accounting, wish, std::nullopt, first, now());
  EXPECT_EQ(advice.value().plan.start, first + hours(6));
  EXPECT_EQ(advice.value().plan.latest, first + hours(8));
}

TEST_F(StartAdviceTest, ADeadlineThatIsTooCloseIsSaid) {
  const auto advice = AdviseStart(CleanLater(), Wish(hours(2)), std::nullopt, now(), now());
  ASSERT_TRUE(advice.ok());
  EXPECT_FALSE(advice.value().plan.meets_deadline);
  EXPECT_THAT(ToSentence(advice.value(), now()),
              HasSubstr("starts now and will most likely end too late: it takes 3.00 h, at most"));
}

TEST_F(StartAdviceTest, WhatIsNotKnownIsAReason) {
  const auto reason = [&](const StartWish& wish) {
    const auto advice = AdviseStart(CleanLater(), wish, std::nullopt, now(), now());
    return advice.ok() ? "" : advice.error().message;
  };
  StartWish wish = Wish();
  wish.duration.reset();
  EXPECT_THAT(reason(wish), HasSubstr("say it with --duration"));
  wish = Wish();
  wish.finish_by.reset();
  EXPECT_THAT(reason(wish), HasSubstr("needs a time to finish by"));
  wish = Wish();
  wish.goal = ShiftGoal::kPrice;
  EXPECT_THAT(reason(wish), HasSubstr("no source of prices"));
  wish = Wish();
  clock_.Advance(hours(24 * 60));
  wish.finish_by = now() + hours(10);
  EXPECT_THAT(reason(wish), HasSubstr("no value near"));
}

TEST_F(StartAdviceTest, AWishIsReadFromJson) {
  const auto wish = StartWishFromJson(
      Json::parse(R"({"goal":"price","finish_within_seconds":3600,"duration_seconds":60})"), now());
  ASSERT_TRUE(wish.ok()) << wish.error().message;
  EXPECT_EQ(wish.value().goal, ShiftGoal::kPrice);
  EXPECT_EQ(wish.value().finish_by, now() + hours(1));
  EXPECT_EQ(wish.value().duration, Seconds(60));
  for (const auto& [text, reason] :
       {std::pair(R"({})", "goal"), std::pair(R"({"goal":"fun"})", "carbon or price"),
        std::pair(R"({"goal":"price"})", "is needed"),
        std::pair(R"({"goal":"price","max_wait_seconds":-1})", "max_wait"),
        std::pair(R"({"goal":"price","max_wait":1})", "not a field")})
    EXPECT_THAT(StartWishFromJson(Json::parse(text), now()).error().message, HasSubstr(reason));
}

TEST_F(StartAdviceTest, WhereNothingIsGainedTheSentenceSaysSo) {
  const auto flat = Open("time,grams_per_kwh\n1681689600,300\n1681862400,300\n");
  EXPECT_THAT(ToSentence(AdviseStart(flat, Wish(), std::nullopt, now(), now()).value(), now()),
              HasSubstr("the run starts now: waiting would gain nothing (grid.csv)"));
  const auto unsure = AdviseStart(CleanLater(3), Wish(), std::nullopt, now(), now());
  EXPECT_THAT(ToSentence(unsure.value(), now()), HasSubstr("within the error of the forecast"));
}

}  // namespace start_advice_test
}  // namespace zeus
