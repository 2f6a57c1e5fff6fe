// Whether stated intervals hold the truth, in the cells of docs/accuracy.md that were wrong once.
// Seeds are fixed; `./dev bench accuracy` has all cells.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "zeus/monitor/testing/accuracy_case.h"

namespace zeus {
namespace coverage_test {

using namespace zeus::testing;

struct Shares {
  int cases = 0;
  int refined = 0;
  int immediate = 0;  // Counts only results that are no preview.
  int previews = 0;
  double sigma_squares = 0;

  double Refined() const { return 1.0 * refined / cases; }
  double Immediate() const {
    return previews == cases ? 1.0 : 1.0 * immediate / (cases - previews);
  }
  double Sigma() const { return std::sqrt(sigma_squares / cases); }
};

Shares Inside(const SensorKind& sensor, const Load& load, double length, int cases) {
  Shares shares;
  for (unsigned seed = 1; shares.cases < cases; ++seed) {
    for (const Outcome& outcome : RunCase(sensor, load, {.length = length, .seed = seed})) {
      ++shares.cases;
      shares.refined += outcome.Contains(outcome.refined);
      shares.previews += outcome.immediate.preview;
      shares.immediate += !outcome.immediate.preview && outcome.Contains(outcome.immediate);
      shares.sigma_squares += outcome.refined.sigma * outcome.refined.sigma;
      EXPECT_FALSE(outcome.refined.preview);
    }
  }
  return shares;
}

const SensorKind& Sensor(const std::string& name) {
  for (const SensorKind& kind : SensorKinds())
    if (kind.name == name) return kind;
  ADD_FAILURE() << "no sensor " << name;
  return SensorKinds().front();
}

Load PlainLoad(const std::string& name) {
  for (const Load& load : PlainLoads())
    if (load.name == name) return load;
  ADD_FAILURE() << "no load " << name;
  return PlainLoads().front();
}

// Sensors that see all of the time.
class FullCoverageTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FullCoverageTest, ALittleWorkAnywhereInAWindowOnAnIdleDevice) {
  for (const Place place : {Place::kStart, Place::kMiddle, Place::kEnd, Place::kEndAwaited}) {
    for (const double length : {0.2, 1.0}) {
      const Load load = WorkAlone(place);
      const Shares inside = Inside(Sensor(GetParam()), load, length, 100);
      EXPECT_GE(inside.Refined(), 0.9) << load.name << ", " << length << " s";
      EXPECT_GE(inside.Immediate(), 0.85) << load.name << ", " << length << " s";
    }
  }
}

TEST_P(FullCoverageTest, ALittleWorkAnywhereInEachWindowOfALoop) {
  for (const Place place : {Place::kStart, Place::kMiddle, Place::kEnd, Place::kEndAwaited}) {
    const Load load = WorkInALoop(place);
    const Shares inside = Inside(Sensor(GetParam()), load, 0.5, 150);
    EXPECT_GE(inside.Refined(), 0.9) << load.name;
    EXPECT_GE(inside.Immediate(), 0.9) << load.name;
    EXPECT_EQ(inside.previews, 0) << "a load that changes is no steady one";
  }
}

TEST_P(FullCoverageTest, SquareWavesThatBeatAgainstTheSensor) {
  for (const char* name : {"square x0.5", "square x0.97"}) {
    const Shares inside = Inside(Sensor(GetParam()), PlainLoad(name), 3, 60);
    EXPECT_GE(inside.Refined(), 0.9) << name;
    EXPECT_GE(inside.Immediate(), 0.85) << name;
  }
}

TEST_P(FullCoverageTest, WorkThatWasWaitedForIsKnownBetter) {
  const Shares plain = Inside(Sensor(GetParam()), WorkAlone(Place::kEnd), 1, 60);
  const Shares awaited = Inside(Sensor(GetParam()), WorkAlone(Place::kEndAwaited), 1, 60);
  EXPECT_LE(awaited.Sigma(), 1.35 * plain.Sigma());
  EXPECT_GE(awaited.Refined(), 0.95);
}

TEST_P(FullCoverageTest, ASteadyLoadIsNotWidened) {
  const Shares steady = Inside(Sensor(GetParam()), PlainLoad("steady"), 1, 40);
  EXPECT_LT(steady.Sigma(), 0.005 * 300) << "of 300 J";
  EXPECT_EQ(steady.Refined(), 1.0);
}

INSTANTIATE_TEST_SUITE_P(Sensors, FullCoverageTest,
                         ::testing::Values("power 100/100 ms", "counter 100 ms"),
                         [](const auto& sensor) {
                           return std::string(sensor.param).starts_with("power") ? "Power"
                                                                                 : "Counter";
                         });

TEST(CoverageTest, RandomWindows) {
  for (const SensorKind& sensor : SensorKinds()) {
    const Shares inside = Inside(sensor, RandomWindows(), 1, 400);
    EXPECT_GE(inside.Refined(), 0.9) << sensor.name;
    EXPECT_GE(inside.Immediate(), 0.9) << sensor.name;
  }
}

TEST(CoverageTest, ASensorWithGapsMayHaveMissedTheOnlyWorkOfAWindow) {
  const SensorKind& sensor = Sensor("power 100/25 ms");
  for (const Place place : {Place::kStart, Place::kMiddle, Place::kEnd, Place::kEndAwaited}) {
    for (const double length : {0.2, 1.0}) {
      const Load load = WorkAlone(place);
      const Shares inside = Inside(sensor, load, length, 100);
      EXPECT_GE(inside.Refined(), 0.9) << load.name << ", " << length << " s";
      EXPECT_GE(inside.Immediate(), 0.9) << load.name << ", " << length << " s";
    }
  }
  const Shares steady = Inside(sensor, PlainLoad("steady"), 1, 40);
  EXPECT_LT(steady.Sigma(), 0.01 * 300) << "a busy device hides no work";
}

TEST(CoverageTest, ASensorWithGapsLearnsThatWorkMayFallIntoThem) {
  const SensorKind& sensor = Sensor("power 100/25 ms");
  for (const Place place : {Place::kStart, Place::kMiddle, Place::kEnd})
    EXPECT_GE(Inside(sensor, WorkInALoop(place), 0.5, 150).Refined(), 0.9)
        << WorkInALoop(place).name;
}

}  // namespace coverage_test
}  // namespace zeus
