#include "zeus/optimizer/power_limit/power_limit_optimizer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <stdexcept>

#include "zeus/optimizer/power_limit/testing/fake_job.h"

namespace zeus {
namespace power_limit_optimizer_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using zeus::testing::FakeJob;
using zeus::testing::FakeStep;
using zeus::testing::TypicalStep;
using Optimizer = PowerLimitOptimizer;

PowerLimitOptimizer::Options Options(Selector selector, SliceRule rule = SliceRule::BySteps()) {
  return {.selector = std::move(selector), .rule = rule};
}

Watts Best(const PowerLimitOptimizer& optimizer) {
  return std::get<Watts>(optimizer.profile().points[*optimizer.best()].setting);
}

// The calls of the reference implementation: wait 1, warm up 10, profile 40, limits 300 to 100 W.
TEST(PowerLimitOptimizerTest, TheReferenceRuleTakesTheReferenceSteps) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  const auto until = [&](int step) {
    while (job.steps < step) job.Step(optimizer);
  };
  optimizer.OnEpochBegin();

  until(1);
  EXPECT_TRUE(std::holds_alternative<Optimizer::Ready>(optimizer.state()));
  EXPECT_TRUE(job.knob.history.empty());
  until(2);
  EXPECT_THAT(job.knob.history, ElementsAre(300_W));
  until(11);
  EXPECT_TRUE(std::holds_alternative<Optimizer::Warmup>(optimizer.state()));
  until(12);
  EXPECT_TRUE(job.meter.measuring());
  EXPECT_TRUE(std::holds_alternative<Optimizer::Profiling>(optimizer.state()));
  until(51);
  EXPECT_EQ(job.knob.present(), 300_W);
  until(52);
  EXPECT_EQ(job.knob.present(), 275_W);
  EXPECT_FALSE(job.meter.measuring());
  until(451);
  EXPECT_FALSE(optimizer.done());
  until(452);
  EXPECT_TRUE(optimizer.done());
  EXPECT_TRUE(std::holds_alternative<Optimizer::Done>(optimizer.state()));
  EXPECT_EQ(job.meter.labels.size(), 9u);
  EXPECT_EQ(job.meter.labels.front(), "300 W");
  EXPECT_TRUE(optimizer.profile().complete);
}

TEST(PowerLimitOptimizerTest, TheProfileIsWhatTheStepsTook) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  job.Train(optimizer, 1000);

  ASSERT_EQ(optimizer.profile().points.size(), 9u);
  EXPECT_EQ(optimizer.profile().max_power, 300_W);
  for (const ProfilePoint& point : optimizer.profile().points) {
    const FakeStep truth = TypicalStep(std::get<Watts>(point.setting));
    EXPECT_NEAR(point.time_per_step / truth.time, 1, 1e-9);
    EXPECT_NEAR(point.energy_per_step / truth.energy, 1, 1e-9);
    EXPECT_EQ(point.steps, 40);
  }
}

TEST(PowerLimitOptimizerTest, TheBestLimitIsLeftSetAndTheOldOnePutBackAtTheEnd) {
  FakeJob job(TypicalStep);
  {
    PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
    job.Train(optimizer, 1000);
    EXPECT_EQ(job.knob.present(), Best(optimizer));
    EXPECT_LT(job.knob.present(), 300_W);
  }
  EXPECT_EQ(job.knob.present(), 300_W);
}

TEST(PowerLimitOptimizerTest, AnObserverLeavesTheKnobAloneAfterwards) {
  FakeJob job(TypicalStep, {100_W, 300_W}, 260_W);
  PowerLimitOptimizer::Options options = Options(Energy());
  options.mode = OptimizerMode::kObserve;
  PowerLimitOptimizer optimizer(job.parts(), std::move(options));
  job.Train(optimizer, 1000);

  EXPECT_EQ(job.knob.present(), 260_W);
  ASSERT_TRUE(optimizer.best());
  EXPECT_LT(Best(optimizer), 260_W);
  // The limit that the job had is part of the profile, although no stride leads there.
  ASSERT_TRUE(optimizer.original());
  EXPECT_EQ(optimizer.profile().points[*optimizer.original()].setting, Setting(260_W));
}

TEST(PowerLimitOptimizerTest, EpochsOfAnyLengthFinish_W9) {
  FakeJob reference(TypicalStep);
  PowerLimitOptimizer whole(reference.parts(), Options(ZeusCost(0.5)));
  reference.Train(whole, 1000);
  for (const int length : {1, 2, 3, 7, 50, 51}) {
    FakeJob job(TypicalStep);
    PowerLimitOptimizer optimizer(job.parts(), Options(ZeusCost(0.5)));
    job.Train(optimizer, length);

    ASSERT_TRUE(optimizer.done()) << length;
    EXPECT_EQ(Best(optimizer), Best(whole)) << length;
    // At the end of an epoch the next step need not begin for the last one to count.
    EXPECT_NEAR(job.steps, 452, length) << length;
    for (std::size_t i = 0; i < whole.profile().points.size(); ++i)
      EXPECT_NEAR(optimizer.profile().points[i].energy_per_step.value(),
                  whole.profile().points[i].energy_per_step.value(), 1e-6);
  }
}

TEST(PowerLimitOptimizerTest, NoWarmupIsAllowed_W8) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy(), SliceRule::BySteps(0, 0, 5)));
  job.Train(optimizer, 1000, 1);
  EXPECT_TRUE(optimizer.done());
  EXPECT_EQ(optimizer.trouble(), std::nullopt);
  SliceRule none = SliceRule::BySteps(0, 0, 5);
  none.warmup = {};
  FakeJob again(TypicalStep);
  PowerLimitOptimizer without(again.parts(), Options(Energy(), none));
  again.Train(without, 1000, 1);
  EXPECT_EQ(Best(without), Best(optimizer));
}

TEST(PowerLimitOptimizerTest, SlicesByTimeLastAsLongAsAsked) {
  FakeJob job(TypicalStep);
  SliceRule rule;
  rule.enough_precision = 0;
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy(), rule));
  job.Train(optimizer, 100'000, 1);

  ASSERT_TRUE(optimizer.done());
  for (const ProfilePoint& point : optimizer.profile().points)
    EXPECT_NEAR(static_cast<double>(point.steps) * point.time_per_step.count(), 5.0, 0.15);
}

TEST(PowerLimitOptimizerTest, LongStepsAreMeasuredTwiceAtLeast) {
  FakeJob job([](Watts limit) { return FakeStep{20s, limit * 20s}; });
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy(), SliceRule()));
  job.Train(optimizer, 100'000, 1);
  for (const ProfilePoint& point : optimizer.profile().points) EXPECT_EQ(point.steps, 2);
}

TEST(PowerLimitOptimizerTest, ASliceEndsWhenItIsPreciseEnough) {
  FakeJob exact(TypicalStep);
  PowerLimitOptimizer soon(exact.parts(), Options(Energy(), SliceRule()));
  exact.Train(soon, 100'000, 1);
  for (const ProfilePoint& point : soon.profile().points) EXPECT_EQ(point.steps, 4);

  FakeJob vague(TypicalStep);
  vague.meter.relative_sigma = 0.01;
  PowerLimitOptimizer late(vague.parts(), Options(Energy(), SliceRule()));
  vague.Train(late, 100'000, 1);
  for (const ProfilePoint& point : late.profile().points) EXPECT_GT(point.steps, 20);

  // Steps of which every other takes twice as long.
  int step = 0;
  FakeJob uneven([&](Watts limit) {
    const double factor = ++step % 2 == 0 ? 2 : 1;
    return FakeStep{TypicalStep(limit).time * factor, TypicalStep(limit).energy * factor};
  });
  PowerLimitOptimizer careful(uneven.parts(), Options(Energy(), SliceRule()));
  uneven.Train(careful, 100'000, 1);
  for (const ProfilePoint& point : careful.profile().points) {
    EXPECT_GT(point.steps, 15);
    EXPECT_GT(point.time_sigma / point.time_per_step, 0.02);
    EXPECT_GT(point.energy_sigma / point.energy_per_step, 0.02);
  }
}

TEST(PowerLimitOptimizerTest, TheLastSliceIsWaitedFor) {
  FakeJob job(TypicalStep);
  job.meter.final_after = 250ms;
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  while (!std::holds_alternative<Optimizer::Confirming>(optimizer.state())) job.Step(optimizer);
  EXPECT_EQ(job.steps, 452);
  while (!optimizer.done()) job.Step(optimizer);

  EXPECT_LT(job.steps, 460);
  const ProfilePoint& last = optimizer.profile().points.back();
  EXPECT_NEAR(last.energy_per_step / TypicalStep(100_W).energy, 1, 1e-9);
}

TEST(PowerLimitOptimizerTest, ASensorThatNeverConfirmsDoesNotHoldTheJobUp) {
  FakeJob job(TypicalStep);
  job.meter.final_after = 1h;
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  job.Train(optimizer, 1000, 1);
  EXPECT_TRUE(optimizer.done());
}

TEST(PowerLimitOptimizerTest, AGpuWithOneLimitHasOneAnswer) {
  FakeJob job(TypicalStep, {250_W, 250_W}, 250_W);
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  job.Train(optimizer, 1000, 1);
  ASSERT_TRUE(optimizer.done());
  EXPECT_EQ(Best(optimizer), 250_W);
  EXPECT_EQ(optimizer.trouble(), std::nullopt);
}

TEST(PowerLimitOptimizerTest, AGpuThatRefusesToBeSetLetsTheJobGoOn_W5) {
  FakeJob job(TypicalStep);
  job.knob.refusal = Error{ErrorCode::kPermissionDenied, "needs root"};
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  job.Epoch(optimizer, 100);

  EXPECT_TRUE(optimizer.done());
  EXPECT_EQ(optimizer.best(), std::nullopt);
  ASSERT_TRUE(optimizer.trouble());
  EXPECT_EQ(optimizer.trouble()->code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(job.knob.present(), 300_W);
}

TEST(PowerLimitOptimizerTest, AGpuThatRefusesMidwayIsPutBack) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  while (job.knob.present() != 200_W) job.Step(optimizer);
  job.knob.refusal = Error{ErrorCode::kUnavailable, "gone"};
  job.Epoch(optimizer, 100);

  EXPECT_TRUE(optimizer.trouble());
  EXPECT_EQ(job.knob.present(), 300_W);
}

TEST(PowerLimitOptimizerTest, AMeterThatFailsLetsTheJobGoOn) {
  FakeJob job(TypicalStep);
  job.meter.failure = Error{ErrorCode::kUnavailable, "the GPU is lost"};
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  job.Epoch(optimizer, 100);
  ASSERT_TRUE(optimizer.trouble());
  EXPECT_THAT(optimizer.trouble()->message, HasSubstr("lost"));
  EXPECT_EQ(job.knob.present(), 300_W);
}

TEST(PowerLimitOptimizerTest, GivenLimitsAreTriedAndTheOneThatTheJobHad) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer::Options options = Options(Energy());
  options.settings = {120_W, 180_W};
  PowerLimitOptimizer optimizer(job.parts(), std::move(options));
  job.Train(optimizer, 1000);
  EXPECT_THAT(job.knob.history, ElementsAre(300_W, 180_W, 120_W));
  EXPECT_EQ(Best(optimizer), 120_W);
}

TEST(PowerLimitOptimizerTest, SettingsOfAnotherUnitAreRefused) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer::Options options = Options(Energy());
  options.settings = {1380_MHz};
  PowerLimitOptimizer optimizer(job.parts(), std::move(options));
  ASSERT_TRUE(optimizer.trouble());
  EXPECT_THAT(optimizer.trouble()->message, HasSubstr("1380 MHz is no setting"));
  options = Options(Energy());
  options.stride = 0_W;
  PowerLimitOptimizer nowhere(job.parts(), std::move(options));
  EXPECT_TRUE(nowhere.trouble());
}

TEST(PowerLimitOptimizerTest, RulesAndSettingsThatMeanNothingAreRefused) {
  const double nan = std::nan("");
  for (const SliceRule& rule :
       {SliceRule{.profile = {.time = Seconds(nan)}}, SliceRule{.warmup = {.time = Seconds(-1)}},
        SliceRule{.profile = {}}, SliceRule{.enough_precision = nan}}) {
    FakeJob job(TypicalStep);
    PowerLimitOptimizer optimizer(job.parts(), Options(Energy(), rule));
    ASSERT_TRUE(optimizer.trouble());
    EXPECT_EQ(optimizer.trouble()->code, ErrorCode::kInvalidArgument);
  }
  for (const double watts : {nan, 0.0, -5.0, HUGE_VAL}) {
    FakeJob job(TypicalStep);
    PowerLimitOptimizer::Options options = Options(Energy());
    options.settings = {200_W, Watts(watts)};
    PowerLimitOptimizer optimizer(job.parts(), std::move(options));
    EXPECT_TRUE(optimizer.trouble()) << watts;
  }
}

TEST(PowerLimitOptimizerTest, ASelectorThatThrowsDoesNotStopTheTraining) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(
      job.parts(), Options({.name = "mine", .select = [](const Profile&) -> Result<std::size_t> {
                              throw std::runtime_error("out of ideas");
                            }}));
  job.Train(optimizer, 1000, 1);
  ASSERT_TRUE(optimizer.trouble());
  EXPECT_EQ(optimizer.trouble()->message, "choose by mine: out of ideas");
  EXPECT_EQ(job.knob.present(), 300_W);
}

TEST(PowerLimitOptimizerTest, ASelectorOfTheUserIsAskedAndCheckedUpon) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(
      job.parts(), Options({.name = "third", .select = [](const Profile&) -> Result<std::size_t> {
                              return std::size_t{2};
                            }}));
  job.Train(optimizer, 1000);
  EXPECT_EQ(Best(optimizer), 250_W);

  FakeJob other(TypicalStep);
  PowerLimitOptimizer wild(
      other.parts(), Options({.name = "wild", .select = [](const Profile&) -> Result<std::size_t> {
                                return std::size_t{99};
                              }}));
  other.Train(wild, 1000, 1);
  ASSERT_TRUE(wild.trouble());
  EXPECT_THAT(wild.trouble()->message, HasSubstr("wild chose a setting that is not"));
  EXPECT_EQ(other.knob.present(), 300_W);
}

TEST(PowerLimitOptimizerTest, AKnownProfileIsUsedAtOnce) {
  FakeJob first(TypicalStep);
  PowerLimitOptimizer measured(first.parts(), Options(Energy()));
  first.Train(measured, 1000);
  FakeJob job(TypicalStep);
  PowerLimitOptimizer::Options options = Options(Energy());
  options.known = measured.profile();
  PowerLimitOptimizer optimizer(job.parts(), std::move(options));

  EXPECT_TRUE(optimizer.done());
  EXPECT_THAT(job.knob.history, ElementsAre(Best(measured)));
}

TEST(PowerLimitOptimizerTest, AProfileThatWasCutShortIsCompletedByTheNextRun_W9) {
  FakeJob first(TypicalStep);
  PowerLimitOptimizer cut(first.parts(), Options(Energy()));
  first.Epoch(cut, 220);
  cut.Conclude();
  ASSERT_FALSE(cut.profile().complete);
  ASSERT_EQ(cut.profile().points.size(), 5u);  // The last one from some steps only.

  FakeJob job(TypicalStep);
  PowerLimitOptimizer::Options options = Options(Energy());
  options.known = cut.profile();
  PowerLimitOptimizer optimizer(job.parts(), std::move(options));
  job.Train(optimizer, 1000);

  EXPECT_EQ(job.knob.history.front(), 175_W);
  EXPECT_EQ(optimizer.profile().points.size(), 9u);
  EXPECT_TRUE(optimizer.profile().complete);
}

TEST(PowerLimitOptimizerTest, EveryStepIsBookedToALimit) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  job.Epoch(optimizer, 1000);
  const auto steps = optimizer.StepsAtPoints();

  std::int64_t sum = 0;
  for (const std::int64_t at : steps) sum += at;
  EXPECT_EQ(sum, 1000);
  EXPECT_EQ(steps[0], 51);  // One step before anything was touched.
  EXPECT_EQ(steps[*optimizer.best()], 50 + 1000 - 451);
}

TEST(PowerLimitOptimizerTest, ASliceUnderACapFromOutsideIsMeasuredAgain) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  while (job.steps < 20) job.Step(optimizer);
  job.knob.cap = 120_W;
  while (job.steps < 40) job.Step(optimizer);  // Seen within the slice.
  job.knob.cap = 1000_W;
  job.Train(optimizer, 1000);
  EXPECT_TRUE(optimizer.left_out().empty());
  EXPECT_TRUE(optimizer.profile().complete);
  ASSERT_EQ(optimizer.profile().points.size(), 9u);
  EXPECT_EQ(optimizer.profile().points.front().steps, 40);
  EXPECT_THAT(job.knob.history,
              ElementsAre(300_W, 300_W, 275_W, 250_W, 225_W, 200_W, 175_W, 150_W, 125_W, 100_W));
}

TEST(PowerLimitOptimizerTest, ACapThatComesDuringTheSearchBoundsTheChoice) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), Options(Time()));
  while (job.steps < 420) job.Step(optimizer);  // The last of nine slices has begun.
  job.knob.ceiling = 210_W;
  job.Train(optimizer, 1000);
  ASSERT_TRUE(optimizer.done());
  EXPECT_FALSE(optimizer.trouble());
  EXPECT_EQ(job.knob.present(), 200_W);
  EXPECT_EQ(optimizer.profile().points[*optimizer.best()].setting, Setting(200_W));
}

TEST(PowerLimitOptimizerTest, SettingsThatAreNeverInForceAreLeftOut) {
  FakeJob job(TypicalStep);
  job.knob.cap = 190_W;
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  job.Train(optimizer, 1000);
  ASSERT_TRUE(optimizer.done());
  EXPECT_FALSE(optimizer.trouble());
  EXPECT_EQ(optimizer.left_out().size(), 5u);
  EXPECT_THAT(optimizer.left_out().front().reason, HasSubstr("cap from outside"));
  EXPECT_EQ(optimizer.profile().points.size(), 4u);
  EXPECT_FALSE(optimizer.profile().complete);
}

TEST(PowerLimitOptimizerTest, WhenNothingIsEverInForceTheJobIsNotOptimised) {
  FakeJob job(TypicalStep);
  job.knob.cap = 90_W;
  PowerLimitOptimizer optimizer(job.parts(), Options(Energy()));
  job.Train(optimizer, 1000);
  ASSERT_TRUE(optimizer.trouble());
  EXPECT_THAT(optimizer.trouble()->message, HasSubstr("no setting could be measured"));
  EXPECT_EQ(job.knob.present(), 300_W);
}

// --- jobs that are observed from outside ---

// A command that reports only its epochs: each is a step, and a slice.
PowerLimitOptimizer::Options OfEpochs() {
  PowerLimitOptimizer::Options options = Options(Energy(), SliceRule::BySteps(1, 0, 1));
  options.settings = {300_W, 200_W, 100_W};
  options.least_scatter = 0.005;
  return options;
}

TEST(PowerLimitOptimizerTest, EpochsCanBeSteps) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), OfEpochs());
  job.Step(optimizer);  // The first epoch contains the start of the program.
  EXPECT_TRUE(job.knob.history.empty());
  for (const Watts limit : {300_W, 200_W, 100_W}) {
    job.Step(optimizer);
    EXPECT_EQ(job.knob.present(), limit);
  }
  optimizer.OnStepBegin();
  ASSERT_TRUE(optimizer.done());
  ASSERT_EQ(optimizer.profile().points.size(), 3U);
  for (const ProfilePoint& point : optimizer.profile().points) {
    EXPECT_EQ(point.steps, 1);
    EXPECT_NEAR(point.time_sigma / point.time_per_step, 0.005, 1e-9);
  }
  EXPECT_EQ(job.knob.present(), Best(optimizer));
}

TEST(PowerLimitOptimizerTest, AnEpochWhoseEndIsNotKnownIsMeasuredAgain) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), OfEpochs());
  job.Step(optimizer);
  job.Step(optimizer);  // 300 W.
  job.Step(optimizer);  // 200 W, of which the end is not seen …
  optimizer.DropStep();
  EXPECT_FALSE(job.meter.measuring());
  job.clock.Advance(1h);
  job.Step(optimizer);  // … so that it is measured again.
  EXPECT_EQ(job.knob.present(), 200_W);
  job.Step(optimizer);
  optimizer.OnStepBegin();
  ASSERT_TRUE(optimizer.done());
  EXPECT_TRUE(optimizer.left_out().empty());
  EXPECT_NEAR(optimizer.profile().points[1].time_per_step / TypicalStep(200_W).time, 1, 1e-9);
}

TEST(PowerLimitOptimizerTest, PollingConfirmsBetweenEpochs) {
  FakeJob job(TypicalStep);
  job.meter.final_after = 250ms;
  PowerLimitOptimizer optimizer(job.parts(), OfEpochs());
  for (int i = 0; i < 4; ++i) job.Step(optimizer);
  optimizer.OnStepBegin();
  EXPECT_FALSE(optimizer.done());
  while (!optimizer.done()) job.clock.SleepUntil(optimizer.Poll());
  EXPECT_NEAR(optimizer.profile().points[2].energy_per_step / TypicalStep(100_W).energy, 1, 1e-9);
}

TEST(PowerLimitOptimizerTest, AProfileSoFarHasWhatWasMeasured) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer optimizer(job.parts(), OfEpochs());
  for (int i = 0; i < 3; ++i) job.Step(optimizer);
  ASSERT_TRUE(optimizer.UpdateProfile().ok());
  EXPECT_EQ(optimizer.profile().points.size(), 1U) << "200 W is being measured";
  optimizer.Stop();
  EXPECT_TRUE(optimizer.done());
  EXPECT_EQ(optimizer.profile().points.size(), 1U);
  EXPECT_FALSE(optimizer.profile().complete);
  EXPECT_EQ(job.knob.present(), 300_W);
}

TEST(PowerLimitOptimizerTest, RoundsGoThereAndBackAndAddUp) {
  FakeJob job(TypicalStep);
  PowerLimitOptimizer::Options options = Options(Energy(), SliceRule::BySteps(0, 0, 5));
  options.settings = {300_W, 200_W, 100_W};
  options.rounds = 2;
  PowerLimitOptimizer optimizer(job.parts(), std::move(options));
  job.Train(optimizer, 1000, 1);
  ASSERT_TRUE(optimizer.done());
  EXPECT_THAT(std::vector(job.knob.history.begin(), job.knob.history.begin() + 6),
              ElementsAre(300_W, 200_W, 100_W, 100_W, 200_W, 300_W));
  for (const ProfilePoint& point : optimizer.profile().points) EXPECT_EQ(point.steps, 10);
}

TEST(SettingRecordTest, ScatterBetweenRoundsWidensTheErrorBar) {
  FakeJob job(TypicalStep);
  class Rates final : public StepSource {
   public:
    bool Begun() const override { return true; }
    std::optional<StepRate> Between(TimePoint begin, TimePoint /*end*/) const override {
      const Seconds step = begin > TimePoint() ? 200ms : 100ms;
      return StepRate{.steps = 1s / step, .time_per_step = step, .sigma = 0s};
    }
    void ForgetBefore(TimePoint /*when*/) override {}
  } rates;
  SettingRecord record(100_W);
  for (const Seconds begin : {0s, 1s}) {
    ASSERT_TRUE(job.meter.Begin("").ok());
    job.clock.Advance(1s);
    job.meter.used += 100_J;
    record.AddSlice({.ticket = job.meter.End().value(), .begin = TimePoint(begin)});
  }
  EXPECT_NEAR(record.Read(job.meter, &rates).value().energy.value(), 200, 1e-9);
  const auto point = record.ObservedPoint();
  ASSERT_TRUE(point);
  EXPECT_EQ(point->steps, 15);
  EXPECT_NEAR(point->time_per_step.count(), 0.15, 1e-12);
  EXPECT_NEAR(point->time_sigma.count(), 0.05, 1e-12);
  EXPECT_NEAR(point->energy_per_step.value(), 15, 1e-9);
}

}  // namespace power_limit_optimizer_test
}  // namespace zeus
