// A whole search over a simulated GPU, and the outputs that are made of it.
#include "apps/zeus/profile/profile_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "zeus/base/json.h"
#include "zeus/base/stepped_clock.h"
#include "zeus/device/knobs/knob_group.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"
#include "zeus/optimizer/power_limit/setting_record.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/report/report.h"
#include "zeus/session/progress.h"

namespace zeus::cli {
namespace profile_output_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;

// A job on a V100 that tells its steps every tenth of a second.
class ProfileOutputTest : public ::testing::Test {
 protected:
  ProfileOutputTest() {
    std::vector<std::unique_ptr<DeviceKnob>> members;
    members.push_back(DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, gpu_).value());
    knob_ = KnobGroup::Of(std::move(members)).value();
    load_ = gpu_.AttachLoad(sim::testing::Train("shufflenet", 1024)).value();
    clock_.Run([this] { return monitor_.Step(); });
    clock_.Advance(10min);  // The board is warm after this.
  }

  // Until the search is done, or for `time`.
  void Run(PowerLimitOptimizer& search, Seconds time = 1h) {
    const TimePoint end = clock_.Now() + time;
    while (!search.done() && clock_.Now() < end) {
      const TimePoint next = std::min<TimePoint>(search.Poll(), clock_.Now() + 100ms);
      if (search.done()) return;
      clock_.SleepUntil(next);
      if (tells_steps_) series_.Observe(clock_.Now(), gpu_.StepsDone(load_).value());
    }
  }

  // Slices last 5 s, so that the tests know at which setting the search is; others say otherwise.
  PowerLimitOptimizer::Options Plan(std::optional<unsigned> rounds = 1) const {
    PowerLimitOptimizer::Options options{.mode = OptimizerMode::kMeasure};
    options.rule.warmup = {.time = 1s};
    options.rule.profile = {.time = 5s};
    options.rule.enough_precision = 0;
    options.settings = settings_;
    options.try_present = false;
    options.rounds = rounds;
    options.log = false;
    return options;
  }

  PowerLimitOptimizer::Parts Parts() { return {clock_, *knob_, meter_, alone_, &series_}; }

  static std::vector<std::string> Notes(ProfileReport report, SearchEnd end) {
    report.end = std::move(end);
    return NotesOn(report);
  }

  ProfileReport Report(const PowerLimitOptimizer& search, ProfileObjectives objectives = {}) const {
    ProfileReport report;
    report.command = {"./train", "<fast>"};
    report.progress = ProgressSource::kOutput;
    report.knob_name = knob_->name();
    report.max_power = knob_->max_power();
    report.plan = {.rounds = 1, .warmup = 1s, .slice = 5s};
    FillReport(report, search, objectives);
    return report;
  }

  Watts Limit() { return gpu_.CurrentPowerLimit().value().requested; }

  SteppedClock clock_;
  sim::SimulatedGpu gpu_{clock_, sim::testing::Model("V100")};
  EnergyMonitor monitor_{clock_,
                         {{.meter = &gpu_, .gpu = &gpu_, .sensor = PriorProfile(gpu_.identity())}}};
  MonitorSliceMeter meter_{monitor_, {0}};
  std::unique_ptr<KnobGroup> knob_;
  SingleProcess alone_;
  std::uint32_t load_ = 0;
  ProgressSeries series_{1ms};
  bool tells_steps_ = true;
  const std::vector<Setting> settings_{250_W, 200_W, 150_W, 100_W};
};

TEST_F(ProfileOutputTest, EveryRowAgreesWithTheCatalogueWithinItsSigmas) {
  PowerLimitOptimizer search(Parts(), Plan(2));
  Run(search);
  ASSERT_TRUE(search.profile().complete);
  EXPECT_EQ(Limit(), 250_W);
  const ProfileReport report = Report(search);
  ASSERT_EQ(report.rows.size(), 4U);
  const sim::Workload& workload = *sim::FindWorkload("shufflenet").value();
  const auto steps = static_cast<double>(sim::StepsPerEpoch(workload, 1024));
  for (const SettingRow& row : report.rows) {
    const auto truth = sim::testing::RunWarm(sim::testing::Model("V100"), workload, 1024,
                                             std::get<Watts>(row.setting));
    ASSERT_TRUE(truth.ok());
    ASSERT_TRUE(row.per_step);
    const Seconds time = truth.value().time_per_epoch / steps;
    // A hundredth beside the sigmas: the power of a board changes with its temperature.
    EXPECT_NEAR(row.per_step->time / time, 1, 3 * (row.per_step->time_sigma / time) + 0.01);
    const Watts power = truth.value().average_power;
    EXPECT_NEAR(row.power / power, 1,
                3 * (row.power_sigma / power) + 3 * report.shared_error + 0.01);
  }
}

TEST_F(ProfileOutputTest, ObjectivesAreAnsweredAndShown) {
  PowerLimitOptimizer search(Parts(), Plan());
  Run(search);
  const ProfileReport report = Report(search, {.eta = 0.5, .max_slowdown = 1.0});
  ASSERT_EQ(report.choices.size(), 4U);
  for (const SettingChoice& choice : report.choices) EXPECT_TRUE(choice.row) << choice.reason;
  EXPECT_EQ(report.choices[2].row, 0U) << "nothing is faster than the highest limit";
  EXPECT_EQ(report.profile.points.size(), 4U);
  EXPECT_THAT(ToTable(report), HasSubstr("cost (eta 0.5)"));
  EXPECT_EQ(ToJson(report)["settings"].size(), 4U);
  const std::string svg = report::ToSvg(ToFigure(report));
  EXPECT_THAT(svg, HasSubstr("./train &lt;fast&gt;"));
  EXPECT_THAT(svg, HasSubstr("energy per step"));
  const report::Panel panel = ToRelativePanel(report);
  EXPECT_THAT(report::ToTextPlot(panel, report::Glyphs::kUnicode), HasSubstr("●"));
  const std::string plain = report::ToTextPlot(panel, report::Glyphs::kAscii);
  const report::Report page = ToReport(report);
  EXPECT_EQ(page.sections[1].tables[0].rows.size(), 4U);
  EXPECT_THAT(page.findings, ::testing::Not(::testing::IsEmpty()));
  EXPECT_TRUE(std::ranges::all_of(plain, [](char c) { return static_cast<signed char>(c) > 0; }));
}

TEST_F(ProfileOutputTest, WithoutProgressThereIsPowerAndNoChoice) {
  UnknownSteps unknown;
  PowerLimitOptimizer search({clock_, *knob_, meter_, alone_, &unknown}, Plan());
  Run(search);
  ProfileReport report = Report(search);
  report.progress = ProgressSource::kNone;
  ASSERT_EQ(report.rows.size(), 4U);
  EXPECT_FALSE(KnowsSteps(report));
  EXPECT_TRUE(report.choices.empty());
  EXPECT_TRUE(report.profile.points.empty());
  EXPECT_THAT(ToTable(report), HasSubstr("unknown"));
  EXPECT_THAT(Notes(report, {}), ::testing::ElementsAre(HasSubstr("--progress 'step")));
  EXPECT_THAT(report::ToSvg(ToFigure(report)), HasSubstr("power (W)"));
}

TEST_F(ProfileOutputTest, ACommandThatEndsMidwayLeavesWhatWasMeasuredAndTheLimitAsItWas) {
  PowerLimitOptimizer search(Parts(), Plan());
  Run(search, 15s);
  EXPECT_NE(Limit(), 250_W);
  search.Stop();
  EXPECT_EQ(Limit(), 250_W);
  const ProfileReport report = Report(search);
  EXPECT_EQ(report.rows.size(), 2U);
  EXPECT_TRUE(report.choices.empty()) << "half of the settings choose nothing";
  EXPECT_THAT(Notes(report, {.command_ended = true, .ran = 15s}),
              ::testing::ElementsAre(HasSubstr("at least 24 s")));
}

TEST_F(ProfileOutputTest, NothingIsTouchedBeforeTheFirstSignOfProgress) {
  tells_steps_ = false;
  PowerLimitOptimizer search(Parts(), Plan());
  Run(search, 30s);
  EXPECT_TRUE(std::holds_alternative<PowerLimitOptimizer::Ready>(search.state()));
  EXPECT_EQ(Limit(), 250_W);
  search.Stop();
  EXPECT_THAT(Notes(Report(search), {.command_ended = true, .waiting = true}),
              ::testing::ElementsAre(HasSubstr("matched --progress")));
}

TEST_F(ProfileOutputTest, ALimitThatCannotBeSetAnyMoreEndsTheSweep) {
  PowerLimitOptimizer search(Parts(), Plan());
  Run(search, 3s);
  gpu_.InjectFault({.kind = sim::FaultKind::kNoPermission});
  Run(search);
  EXPECT_TRUE(search.done());
  EXPECT_FALSE(search.profile().complete);
  ASSERT_TRUE(search.trouble());
}

TEST_F(ProfileOutputTest, ASliceDuringWhichACapCameIsMeasuredAgain) {
  PowerLimitOptimizer search(Parts(), Plan());
  Run(search, 3s);
  gpu_.InjectFault({.kind = sim::FaultKind::kOutOfBandCap, .cap = 120_W});
  Run(search, 2s);
  gpu_.ClearFaults();  // Gone before the slice ends.
  Run(search);
  EXPECT_TRUE(search.profile().complete);
  EXPECT_TRUE(search.left_out().empty());
  const ProfileReport report = Report(search);
  ASSERT_EQ(report.rows.size(), 4U);
  EXPECT_GT(report.rows[0].power, 150_W) << "what was measured under the cap must not count";
}

TEST_F(ProfileOutputTest, SettingsAboveACapThatStaysAreLeftOutAndSaid) {
  PowerLimitOptimizer search(Parts(), Plan());
  Run(search, 3s);
  gpu_.InjectFault({.kind = sim::FaultKind::kOutOfBandCap, .cap = 160_W});
  Run(search);
  EXPECT_FALSE(search.profile().complete);
  EXPECT_FALSE(search.trouble());
  const ProfileReport report = Report(search);
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].setting, Setting(150_W));
  EXPECT_TRUE(report.choices.empty());
  EXPECT_FALSE(report.profile.complete);
  EXPECT_THAT(Notes(report, {.left_out = search.left_out()}),
              ::testing::Contains(HasSubstr("a slice at 250 W is left out")));
}

TEST_F(ProfileOutputTest, ALimitThatAnAdministratorSetsMeanwhileIsKeptTo) {
  PowerLimitOptimizer search(Parts(), Plan());
  Run(search, 3s);
  ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(180_W).ok());
  Watts highest(0);
  for (int i = 0; i < 1000 && !search.done(); ++i) {
    Run(search, 100ms);
    highest = std::max(highest, Limit());
  }
  ASSERT_TRUE(search.done());
  EXPECT_EQ(highest, 180_W);
  EXPECT_EQ(Limit(), 180_W);
  EXPECT_EQ(Report(search).rows.size(), 2U);
}

TEST_F(ProfileOutputTest, AfterAReloadOfTheDriverTheSliceIsMeasuredAgain) {
  PowerLimitOptimizer search(Parts(), Plan());
  Run(search, 9s);
  ASSERT_EQ(Limit(), 200_W);
  gpu_.InjectFault({.kind = sim::FaultKind::kDriverReload});
  Run(search);
  EXPECT_TRUE(search.profile().complete);
  const ProfileReport report = Report(search);
  ASSERT_EQ(report.rows.size(), 4U);
  EXPECT_LT(report.rows[1].power, 202_W);
  EXPECT_EQ(Limit(), 250_W);
}

TEST_F(ProfileOutputTest, EveryOtherRoundGoesBack) {
  PowerLimitOptimizer search(Parts(), Plan(2));
  Run(search);
  std::vector<std::size_t> order;
  std::vector<unsigned> rounds;
  for (const auto& slice : search.Slices()) {
    order.push_back(slice.setting);
    rounds.push_back(slice.round);
  }
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 3, 2, 1, 0));
  EXPECT_THAT(rounds, ::testing::ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

TEST_F(ProfileOutputTest, WithoutANumberOfRoundsThereIsNoEndBeforeItIsStopped) {
  PowerLimitOptimizer search(Parts(), Plan(std::nullopt));
  Run(search, 10min);
  EXPECT_FALSE(search.done());
  search.Stop();
  EXPECT_TRUE(search.done());
  EXPECT_EQ(Limit(), 250_W);
  const ProfileReport report = Report(search);
  ASSERT_EQ(report.rows.size(), 4U);
  EXPECT_GT(report.rows[0].slices, 20U);
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.choices.size(), 3U);
}

TEST_F(ProfileOutputTest, SlicesEndEarlyOnceTheyArePrecise) {
  PowerLimitOptimizer::Options plan = Plan();
  plan.rule.profile = {.time = 60s};
  plan.rule.enough_precision = 0.002;
  const TimePoint begin = clock_.Now();
  PowerLimitOptimizer search(Parts(), std::move(plan));
  Run(search);
  ASSERT_TRUE(search.profile().complete);
  EXPECT_LT(Seconds(clock_.Now() - begin), 120s);
  for (const ProfilePoint& point : search.profile().points)
    EXPECT_LE(point.time_sigma / point.time_per_step, 0.002) << ToText(point.setting);
  for (const auto& slice : search.Slices()) {
    EXPECT_LT(slice.reading.time, 55s);
    EXPECT_GE(slice.rate->intervals, 4U);
  }
}

TEST(MeanOfSlicesTest, ScatterWidensTheErrorBar) {
  EXPECT_NEAR(MeanOfSlices({{.value = 90, .sigma = 1}}).sigma, 1, 1e-9);
  const WeighedMean mean = MeanOfSlices({{.value = 90, .sigma = 1}, {.value = 110, .sigma = 1}});
  EXPECT_NEAR(mean.value, 100, 1e-9);
  EXPECT_GT(mean.sigma, 9);
}

}  // namespace profile_output_test
}  // namespace zeus::cli
