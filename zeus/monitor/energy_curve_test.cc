#include "zeus/monitor/energy_curve.h"

#include <gtest/gtest.h>

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
  EXPECT_NEAR((curve_.At(At(0.35)).energy - curve_.At(At(0.25)).energy).value(), 30, 1e-9);
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
