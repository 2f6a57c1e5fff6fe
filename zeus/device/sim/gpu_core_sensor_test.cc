// The sensors show the exact power with the update periods, averaging windows and gains of the
// hardware.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace gpu_core_sensor_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using testing::Draw;
using testing::DrawFor;
using testing::Model;

// Without the board's gain and offset.
double Calibrated(const GpuCore& core, PowerKind kind) {
  const BoardSensors& board = core.board_sensors();
  return (core.power(kind).value() - board.offset).value() / board.gain;
}

// Times between changes of a value that is polled every millisecond.
template <class Read>
std::vector<double> ChangePeriods(GpuCore& core, Read read) {
  std::vector<double> periods;
  auto last = read(core);
  double changed = -1.0;
  for (int i = 0; i < 2000; ++i) {
    core.AdvanceTo(core.now() + 1ms);
    const auto value = read(core);
    if (value == last) continue;
    if (changed >= 0) periods.push_back(core.now().count() - changed);
    changed = core.now().count();
    last = value;
  }
  return periods;
}

struct Period {
  const char* model;
  double power;
  double counter;
};

class UpdatePeriodTest : public ::testing::TestWithParam<Period> {};

TEST_P(UpdatePeriodTest, ValuesChangeAtThePeriodOfThePart) {
  GpuCore core(Model(GetParam().model), 5, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(200_W)).ok());  // A warming board's power never stands still.
  const auto power = ChangePeriods(
      core, [](const GpuCore& c) { return c.power(PowerKind::kInstant).value().value(); });
  ASSERT_GT(power.size(), 10U);
  for (const double period : power) EXPECT_NEAR(period, GetParam().power, 1.1e-3);

  const auto counter =
      ChangePeriods(core, [](const GpuCore& c) { return c.counter_millijoules().value(); });
  ASSERT_GT(counter.size(), 10U);
  for (const double period : counter) EXPECT_NEAR(period, GetParam().counter, 1.1e-3);
}

INSTANTIATE_TEST_SUITE_P(Parts, UpdatePeriodTest,
                         ::testing::Values(Period{"V100", 0.020, 0.020},
                                           Period{"RTX6000", 0.100, 0.100},
                                           Period{"A100", 0.100, 0.100},
                                           Period{"H100", 0.100, 0.100}),
                         [](const auto& instance) { return std::string(instance.param.model); });

TEST(SensorTest, AReadingIsTheMeanOverTheWindowBeforeItsUpdate) {
  for (const char* id : {"P100", "V100", "RTX6000", "A100", "A40", "H100"}) {
    GpuCore core(Model(id), 5, 0);
    const SensorSpec& spec = core.model().sensors;
    // An update whose window the load covers by a third.
    const Seconds update =
        LastUpdate(10s, spec.power_update, core.board_sensors().power_phase) + spec.power_update;
    const double before = core.exact_power().value();
    core.AdvanceTo(update - spec.power_window / 3.0);
    ASSERT_TRUE(core.AttachLoad(Draw(200_W)).ok());
    const double after = core.exact_power().value();
    core.AdvanceTo(update + 1ms);
    EXPECT_NEAR(Calibrated(core, PowerKind::kInstant), before + (after - before) / 3.0, 0.05) << id;
    core.AdvanceTo(update + spec.power_update + 1ms);
    EXPECT_NEAR(Calibrated(core, PowerKind::kInstant), after, 0.1) << id;
  }
}

TEST(SensorTest, TheOneSecondAverageSmears) {
  GpuCore core(Model("A40"), 5, 0);
  core.AdvanceTo(10s);
  ASSERT_TRUE(core.AttachLoad(Draw(229_W)).ok());
  const Seconds update = LastUpdate(10.5s, 100ms, core.board_sensors().average_phase);
  core.AdvanceTo(10.5s);
  EXPECT_NEAR(Calibrated(core, PowerKind::kOneSecondAverage),
              29.0 + 197.0 * (update.count() - 10.0), 1.0);
  core.AdvanceTo(11.2s);
  EXPECT_NEAR(Calibrated(core, PowerKind::kOneSecondAverage), 226.5, 1.0);
}

TEST(SensorTest, TheOneSecondAverageIsTheMeanOfTheLastSecondAtEveryUpdate) {
  GpuCore core(Model("H100"), 5, 0);
  const Seconds phase = core.board_sensors().average_phase;
  std::vector<double> energy;  // Exact, at every update of the sensor.
  for (int i = 0; i < 60; ++i) {
    core.AdvanceTo(phase + 100ms * i);
    energy.push_back(core.exact_energy().value());
    if (i % 7 == 3) {
      ASSERT_TRUE(core.AttachLoad(DrawFor(450ms, Watts(100.0 + 8.0 * i))).ok());
    }
    if (i < 10) continue;
    core.AdvanceTo(phase + 100ms * i + 99ms);  // Until just before the next one.
    const double mean = energy[energy.size() - 1] - energy[energy.size() - 11];
    ASSERT_NEAR(Calibrated(core, PowerKind::kOneSecondAverage), mean, 1e-6) << i;
    ASSERT_NEAR(Calibrated(core, PowerKind::kMemory), mean * 0.15, 2.0) << i;
  }
}

TEST(SensorTest, EverySensorOfABoardUpdatesAtItsOwnTime) {
  const BoardSensors board = GpuCore(Model("H100"), 5, 0).board_sensors();
  const BoardSensors other = GpuCore(Model("H100"), 5, 1).board_sensors();
  const std::vector<Seconds> phases = {board.power_phase, board.average_phase, board.counter_phase,
                                       other.power_phase, other.average_phase, other.counter_phase};
  for (std::size_t i = 0; i < phases.size(); ++i) {
    EXPECT_TRUE(phases[i] >= 0s && phases[i] < 100ms);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(phases[i], phases[j]);
  }
}

// Windows that reach back before the start meet a board that was idle then.
TEST(SensorTest, TheFirstReadingsAreThoseOfAnIdleBoard) {
  for (const GpuModel& model : GpuModels()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      GpuCore core(model, seed, 0);
      for (const Seconds time : {Seconds(0), Seconds(0.001), Seconds(0.05), Seconds(0.3)}) {
        core.AdvanceTo(time);
        for (const PowerKind kind : {PowerKind::kInstant, PowerKind::kOneSecondAverage}) {
          if (!core.power(kind).ok()) continue;
          EXPECT_NEAR(Calibrated(core, kind), model.idle_power.value(), 1e-6) << model.id;
        }
        const auto counter = core.counter_millijoules();
        if (!counter.ok()) continue;
        const Watts reported = core.board_sensors().Reported(model.idle_power);
        EXPECT_LE(static_cast<double>(counter.value()), (reported * time).ToMilli()) << model.id;
      }
    }
  }
}

TEST(SensorTest, TheFirstAverageMixesTheLoadWithTheIdleTimeBefore) {
  GpuCore core(Model("A40"), 5, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(229_W)).ok());
  core.AdvanceTo(300ms);
  const Seconds update = LastUpdate(300ms, 100ms, core.board_sensors().average_phase);
  EXPECT_NEAR(Calibrated(core, PowerKind::kOneSecondAverage), 29.0 + 197.0 * update.count(), 1.0);
}

TEST(SensorTest, TheOneSecondAverageSurvivesManyChangesWithinIt) {
  GpuCore core(Model("A40"), 5, 0);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(core.AttachLoad(DrawFor(1ms, 229_W)).ok());
    core.AdvanceTo(core.now() + 2ms);
  }
  EXPECT_NEAR(Calibrated(core, PowerKind::kOneSecondAverage), 129.0, 3.0);
}

TEST(SensorTest, AnA100SeesOnlyAQuarterOfAnAlternatingLoad) {
  // A square load whose period is the sensor's: the 25 ms window always meets the same phase.
  double worst = 0.0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GpuCore core(Model("A100"), seed, 0);
    core.AdvanceTo(1s);
    const Joules energy = core.exact_energy();
    const std::uint64_t counter = core.counter_millijoules().value();
    double integrated = 0.0;
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(core.AttachLoad(DrawFor(50ms, 390_W)).ok());
      core.AdvanceTo(core.now() + 100ms);
      integrated += Calibrated(core, PowerKind::kInstant) * 0.1;
    }
    const double exact = (core.exact_energy() - energy).value();
    worst = std::max(worst, std::abs(integrated / exact - 1.0));
    const BoardSensors& board = core.board_sensors();
    const double counted =
        (static_cast<double>(core.counter_millijoules().value() - counter) / 1e3 -
         board.offset.value() * 10.0) /
        board.gain;
    // One update more or less.
    EXPECT_NEAR(counted / exact, 1.0, 0.02) << seed;
  }
  EXPECT_GT(worst, 0.3);
}

TEST(SensorTest, AFullWindowDoesNotAlias) {
  GpuCore core(Model("RTX6000"), 5, 0);
  core.AdvanceTo(1s);
  const Joules energy = core.exact_energy();
  double integrated = 0.0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(core.AttachLoad(DrawFor(50ms, 250_W)).ok());
    core.AdvanceTo(core.now() + 100ms);
    integrated += Calibrated(core, PowerKind::kInstant) * 0.1;
  }
  EXPECT_NEAR(integrated / (core.exact_energy() - energy).value(), 1.0, 0.02);
}

TEST(SensorTest, BoardsOfAModelDifferInsideTheStatedSpread) {
  double lowest = 2.0;
  double highest = 0.0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const GpuCore core(Model("V100"), seed, 0);
    lowest = std::min(lowest, core.board_sensors().gain);
    highest = std::max(highest, core.board_sensors().gain);
    EXPECT_LE(std::abs(core.board_sensors().offset.value()), 1.0);
  }
  EXPECT_GE(lowest, 0.95);
  EXPECT_LT(lowest, 0.96);
  EXPECT_LE(highest, 1.05);
  EXPECT_GT(highest, 1.04);
}

TEST(SensorTest, PartsLackWhatTheyLack) {
  const GpuCore pascal(Model("P100"), 1, 0);
  EXPECT_EQ(pascal.counter_millijoules().error().code, ErrorCode::kNotSupported);
  EXPECT_TRUE(pascal.power(PowerKind::kInstant).ok());
  for (const char* id : {"P100", "V100", "RTX6000", "A100"})
    EXPECT_EQ(GpuCore(Model(id), 1, 0).power(PowerKind::kOneSecondAverage).error().code,
              ErrorCode::kNotSupported);
  for (const char* id : {"A40", "H100", "L40S"})
    EXPECT_TRUE(GpuCore(Model(id), 1, 0).power(PowerKind::kOneSecondAverage).ok());
  EXPECT_FALSE(GpuCore(Model("V100"), 1, 0).power(PowerKind::kMemory).ok());
  EXPECT_TRUE(GpuCore(Model("H100"), 1, 0).power(PowerKind::kMemory).ok());
}

TEST(SensorTest, TheCounterNeverGoesBack) {
  GpuCore core(Model("V100"), 5, 0);
  Random random(9);
  std::uint64_t last = 0;
  for (int i = 0; i < 20000; ++i) {
    ASSERT_TRUE(core.AttachLoad(DrawFor(Seconds(random.Uniform(0.0, 2e-3)), 250_W)).ok());
    core.AdvanceTo(core.now() + Seconds(random.Uniform(0.0, 3e-3)));
    const std::uint64_t now = core.counter_millijoules().value();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(FaultTest, HoldsFromItsTimeOnUntilItIsCleared) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kLost, .at = 10s}).ok());
  core.AdvanceTo(9.9s);
  EXPECT_FALSE(core.fault(FaultKind::kLost).has_value());
  core.AdvanceTo(10s);
  EXPECT_TRUE(core.fault(FaultKind::kLost).has_value());
  EXPECT_FALSE(core.fault(FaultKind::kSlowCall).has_value());
  core.ClearFaults();
  EXPECT_FALSE(core.fault(FaultKind::kLost).has_value());
}

TEST(FaultTest, TheLastOfAKindHolds) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 300_W, .at = 20s}).ok());
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 200_W, .at = 10s}).ok());
  core.AdvanceTo(15s);
  EXPECT_EQ(core.power_limit().enforced, 200_W);
  core.AdvanceTo(25s);
  EXPECT_EQ(core.power_limit().enforced, 300_W);
}

TEST(FaultTest, AFullScheduleRefusesOneMore) {
  GpuCore core(Model("A100"), 1, 3);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kLost, .at = -1s}).ok());
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kSlowCall, .delay = 1ms * i}).ok());
  }
  const Status refused = core.InjectFault({.kind = FaultKind::kMigEnabled});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(refused.error().message, "16 faults are scheduled on GPU 3: clear them first");
  EXPECT_TRUE(core.fault(FaultKind::kLost).has_value());
  EXPECT_FALSE(core.fault(FaultKind::kMigEnabled).has_value());
}

TEST(FaultTest, AFaultThatMeansNothingIsRefused) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  GpuCore core(Model("A100"), 1, 0);
  for (const double delay : {-1.0, 60.1, kInfinity, kNan}) {
    const Fault fault{.kind = FaultKind::kSlowCall, .delay = Seconds(delay)};
    EXPECT_FALSE(core.InjectFault(fault).ok()) << delay;
  }
  for (const double cap : {-1.0, 0.0, 1e6, kInfinity, kNan}) {
    const Fault fault{.kind = FaultKind::kOutOfBandCap, .cap = Watts(cap)};
    EXPECT_FALSE(core.InjectFault(fault).ok()) << cap;
  }
  for (const double probability : {0.0, -1.0, 1.1, kNan}) {
    const Fault fault{.kind = FaultKind::kLost, .probability = probability};
    EXPECT_FALSE(core.InjectFault(fault).ok()) << probability;
  }
  EXPECT_FALSE(core.InjectFault({.kind = FaultKind::kMigEnabled, .probability = 0.5}).ok());
  EXPECT_FALSE(core.InjectFault({.kind = FaultKind::kLost, .at = Seconds(kNan)}).ok());
}

TEST(FaultTest, ADriverReloadRestartsTheCounterNearZero) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kDriverReload, .at = 60s}).ok());
  core.AdvanceTo(59.9s);
  EXPECT_GT(core.counter_millijoules().value(), 2'500'000U);
  core.AdvanceTo(60.2s);
  EXPECT_LT(core.counter_millijoules().value(), 50'000U);
  core.AdvanceTo(120s);
  EXPECT_GT(core.counter_millijoules().value(), 2'500'000U);
  EXPECT_LT(core.counter_millijoules().value(), 3'500'000U);
  EXPECT_FALSE(core.fault(FaultKind::kDriverReload).has_value());
  EXPECT_NEAR(core.exact_energy().value(), 6000.0, 1e-6);
}

TEST(FaultTest, ADriverReloadForgetsWhatProgramsSet) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  ASSERT_TRUE(core.SetPowerLimit(200_W).ok());
  ASSERT_TRUE(core.LockClock(ClockDomain::kGraphics, {.min = 600_MHz, .max = 600_MHz}).ok());
  core.SetPersistence(Persistence::kOff);
  core.AdvanceTo(10s);
  ASSERT_LE(core.exact_power(), 200_W);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kDriverReload}).ok());

  EXPECT_EQ(core.power_limit().requested, 400_W);
  EXPECT_EQ(core.power_limit().enforced, 400_W);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 1410_MHz);
  EXPECT_EQ(core.persistence(), Persistence::kOn);
  EXPECT_GT(core.exact_power(), 380_W);  // The load goes on.
}

TEST(FaultTest, AChangeOnItsWayDoesNotSurviveADriverReload) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.SetPowerLimit(200_W).ok());
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kDriverReload}).ok());
  core.AdvanceTo(1s);
  EXPECT_EQ(core.power_limit().requested, 400_W);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  EXPECT_GT(core.exact_power(), 380_W);
}

TEST(FaultTest, AFrozenCounterStandsStillUntilItIsCleared) {
  GpuCore core(Model("A100"), 1, 0);
  core.AdvanceTo(60s);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kCounterFrozen, .at = 70s}).ok());
  core.AdvanceTo(70s);
  const std::uint64_t frozen = core.counter_millijoules().value();
  EXPECT_GT(frozen, 3'000'000U);
  core.AdvanceTo(1h);
  EXPECT_EQ(core.counter_millijoules().value(), frozen);
  core.ClearFaults();
  core.AdvanceTo(1h + 1s);
  EXPECT_GT(core.counter_millijoules().value(), 100'000'000U);
}

TEST(FaultTest, PowerReadsAsUnavailable) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kPowerUnavailable}).ok());
  EXPECT_EQ(core.power(PowerKind::kInstant).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(core.counter_millijoules().ok());
}

TEST(FaultTest, AnOutOfBandCapBindsAtOnce) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  core.AdvanceTo(10s);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 150_W}).ok());
  EXPECT_EQ(core.exact_power(), 150_W);
  EXPECT_TRUE(core.throttle().power_cap);
  EXPECT_EQ(core.power_limit().requested, 400_W);
  EXPECT_EQ(core.power_limit().enforced, 150_W);
  core.ClearFaults();
  EXPECT_GT(core.exact_power(), 380_W);
}

TEST(FaultTest, SomebodyElseResetsTheClocks) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(300_W)).ok());
  ASSERT_TRUE(core.LockClock(ClockDomain::kGraphics, {.min = 600_MHz, .max = 600_MHz}).ok());
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kClockReset, .at = 5s}).ok());
  core.AdvanceTo(4.9s);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 600_MHz);
  core.AdvanceTo(5s);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 1410_MHz);
}

TEST(FaultTest, HitsTheStatedShareOfCallsTheSameWayForASeed) {
  const auto pattern = [](std::uint64_t seed) {
    GpuCore core(Model("A100"), seed, 0);
    EXPECT_TRUE(core.InjectFault({.kind = FaultKind::kLost, .probability = 0.3}).ok());
    std::string hits;
    for (int i = 0; i < 5000; ++i) hits += core.DrawFault(FaultKind::kLost) ? 'x' : '.';
    return hits;
  };
  const std::string hits = pattern(1);
  EXPECT_NEAR(static_cast<double>(std::count(hits.begin(), hits.end(), 'x')) / 5000.0, 0.3, 0.03);
  EXPECT_EQ(hits, pattern(1));
  EXPECT_NE(hits, pattern(2));
}

}  // namespace gpu_core_sensor_test
}  // namespace zeus::sim
