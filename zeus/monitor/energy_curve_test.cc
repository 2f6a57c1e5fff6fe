#include "zeus/monitor/energy_curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace zeus {
namespace energy_curve_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

class EnergyCurveTest : public ::testing::Test {
 protected:
  // Observed means of successive periods of 100 ms.
  void Observe(std::initializer_list<double> means) {
    for (const double mean : means)
      curve_.Add({.begin = curve_.end(), .end = curve_.end() + 100ms, .power = Watts(mean)});
  }

  EdgeLog edges_;
  EnergyCurve curve_{edges_};
};

TEST_F(EnergyCurveTest, AStepBetweenPlateausHappenedWhenTheMeanSaysSo) {
  curve_.Start(At(0), 60_W);
  Observe({60, 60, 60, 132, 300, 300});  // 0.3 of a period at 300 W: the step was at 0.37 s.
  EXPECT_NEAR(curve_.At(At(0.37)).energy.value(), 60 * 0.37, 1e-9);
  EXPECT_NEAR(curve_.At(At(0.4)).energy.value(), 60 * 0.37 + 300 * 0.03, 1e-9);
}

TEST_F(EnergyCurveTest, AShortBurstIsPutBetweenTheEdgesOfItsWindow) {
  curve_.Start(At(0), 60_W);
  edges_.Mark(At(0.25));
  edges_.Mark(At(0.35));
  // 300 W between the edges, 60 W elsewhere: both periods see half of the burst.
  Observe({60, 60, 180, 180, 60, 60, 60});
  const EnergyCurve::Point begin = curve_.At(At(0.25));
  const EnergyCurve::Point end = curve_.At(At(0.35));
  EXPECT_NEAR((end.energy - begin.energy).value(), 30, 6) << "an even course would give 18 J";
  EXPECT_NEAR((end.energy - begin.energy).value(), 30,
              2 * std::sqrt(begin.edge_variance + end.edge_variance));
}

// 240 W above the idle 60 W for 40 ms, somewhere in the stretch from 0.4 s to 0.5 s.
constexpr double kExcess = 240 * 0.04;

TEST_F(EnergyCurveTest, WorkInTheStretchOfAnEdgeMayLieOnEitherSideOfIt) {
  curve_.Start(At(0), 60_W);
  edges_.Mark(At(0.45));
  Observe({60, 60, 60, 60, 60 + kExcess / 0.1, 60, 60, 60});
  const EnergyCurve::Point edge = curve_.At(At(0.45));
  const double sigma = std::sqrt(edge.edge_variance);
  EXPECT_NEAR(edge.energy.value(), 60 * 0.45 + kExcess / 2, 1e-9);
  EXPECT_GT(1.96 * sigma, kExcess / 2) << "all of it before the edge, or all of it after";
  EXPECT_LT(sigma, kExcess / 2);
  EXPECT_NEAR(curve_.At(At(0.5)).energy.value(), 60 * 0.5 + kExcess, 1e-9);
}

TEST_F(EnergyCurveTest, WorkThatWasWaitedForEndedAtTheEdge) {
  curve_.Start(At(0), 60_W);
  edges_.Mark(At(0.45), EdgeLog::Kind::kWorkEnded);
  Observe({60, 60, 60, 60, 60 + kExcess / 0.1, 60, 60, 60});
  const EnergyCurve::Point edge = curve_.At(At(0.45));
  EXPECT_NEAR(edge.energy.value(), 60 * 0.45 + kExcess, 0.15 * kExcess);
  EXPECT_NEAR(edge.energy.value(), 60 * 0.45 + kExcess, 1.96 * std::sqrt(edge.edge_variance));
}

TEST_F(EnergyCurveTest, WorkThatGoesOnInTheNextStretchLiesAtTheEndOfThisOne) {
  curve_.Start(At(0), 60_W);
  edges_.Mark(At(0.45));
  Observe({60, 60, 60, 60, 100, 90, 60, 60});  // 4 J before 0.5 s and 3 J after.
  EXPECT_NEAR(curve_.At(At(0.45)).energy.value(), 60 * 0.45, 1.5);
}

TEST_F(EnergyCurveTest, ASteadyLoadStaysNarrowAtEdges) {
  curve_.Start(At(0), 60_W);
  edges_.Mark(At(0.45));
  Observe({60, 60, 60, 60, 60, 60, 60, 60});
  EXPECT_LT(std::sqrt(curve_.At(At(0.45)).edge_variance), 0.03 * 6);
  EXPECT_EQ(curve_.At(At(0.45)).hidden, 0_J);
  EXPECT_GT(curve_.At(At(0.85)).hidden, 0_J) << "nobody has seen the last 50 ms";
}

TEST_F(EnergyCurveTest, PartsAddUpToTheWhole) {
  curve_.Start(At(0), 60_W);
  Observe({60, 80, 200, 10, 300, 300, 120});
  const double whole = (curve_.At(At(0.55)).energy - curve_.At(At(0.05)).energy).value();
  double sum = 0;
  for (double t = 0.05; t < 0.549; t += 0.01)
    sum += (curve_.At(At(t + 0.01)).energy - curve_.At(At(t)).energy).value();
  EXPECT_NEAR(sum, whole, 1e-9);
}

TEST_F(EnergyCurveTest, TheLastPeriodIsNotSettled) {
  curve_.Start(At(0), 60_W);
  Observe({60, 60});
  EXPECT_EQ(curve_.settled_until(), At(0.1));
  EXPECT_GT(curve_.At(At(0.5)).edge_variance, curve_.At(At(0.1)).edge_variance);
}

}  // namespace energy_curve_test
}  // namespace zeus
