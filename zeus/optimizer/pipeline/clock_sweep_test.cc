#include "zeus/optimizer/pipeline/clock_sweep.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace zeus::pipeline {
namespace clock_sweep_test {

using namespace zeus::literals;

std::vector<Hertz> Clocks() {
  return {1400_MHz, 1200_MHz, 1000_MHz, 800_MHz, 600_MHz, 400_MHz, 200_MHz};
}

// t = 0.1 + 0.9 fmax/f; the least effective energy is somewhere in the middle.
InstructionEstimate At(Hertz clock, const char* instruction = "forward") {
  const double share = clock / 1400_MHz;
  const double power = 150 + 250 * share * share * share;
  return {.instruction = instruction,
          .repetitions = 8,
          .time = Seconds(0.1 + 0.9 / share),
          .time_sigma = Seconds(0.001),
          .power = Watts(power),
          .power_sigma = Watts(1)};
}

TEST(ClockSweepTest, KnowsEnoughWhenAllInstructionsAreKnownWellEnough) {
  const ClockSweep sweep(Clocks(), {.relative_error = 0.01, .least_repetitions = 4});
  std::vector<InstructionEstimate> estimates = {At(1400_MHz), At(1400_MHz, "backward")};
  EXPECT_TRUE(sweep.KnowsEnough(estimates, 2));
  estimates[1].repetitions = 3;
  EXPECT_FALSE(sweep.KnowsEnough(estimates, 2));
  estimates[1].repetitions = 4;
  estimates[1].power_sigma = estimates[1].power * 0.02;
  EXPECT_FALSE(sweep.KnowsEnough(estimates, 2));
  estimates[1].power_sigma = Watts(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(sweep.KnowsEnough(estimates, 2));
}

TEST(ClockSweepTest, GivesUpOnAClockThatStaysNoisy) {
  const ClockSweep sweep(Clocks(), {.most_iterations = 5});
  InstructionEstimate noisy = At(1400_MHz);
  noisy.time_sigma = noisy.time;
  EXPECT_FALSE(sweep.KnowsEnough({noisy}, 4));
  EXPECT_TRUE(sweep.KnowsEnough({noisy}, 5));
  EXPECT_FALSE(sweep.KnowsEnough({}, 4));
}

// Returns the clocks that a whole sweep measures.
std::vector<Hertz> SweepAll(ClockSweep& sweep, Watts blocking) {
  std::vector<Hertz> visited;
  for (;;) {
    visited.push_back(sweep.clock());
    sweep.Record({At(sweep.clock()), At(sweep.clock(), "backward")});
    if (!sweep.WantsLower(blocking)) return visited;
    sweep.GoLower();
  }
}

TEST(ClockSweepTest, GoesDownUntilEffectiveEnergyNoLongerFalls) {
  ClockSweep sweep(Clocks(), {.clocks_without_gain = 2});
  const std::vector<Hertz> visited = SweepAll(sweep, 70_W);
  // e - P_b t is least at 800 MHz; two more clocks prove it.
  Hertz best{};
  double least = std::numeric_limits<double>::infinity();
  for (const Hertz clock : Clocks()) {
    const InstructionEstimate estimate = At(clock);
    const double cost = (estimate.energy() - 70_W * estimate.time).value();
    if (cost < least) best = clock;
    least = std::min(least, cost);
  }
  ASSERT_GE(visited.size(), 3U);
  EXPECT_EQ(visited[visited.size() - 3], best);
  EXPECT_LT(visited.size(), Clocks().size());
}

TEST(ClockSweepTest, BlockingPowerMakesLowerClocksWorthTrying) {
  ClockSweep without(Clocks(), {});
  ClockSweep with(Clocks(), {});
  EXPECT_LT(SweepAll(without, 0_W).size(), SweepAll(with, 140_W).size());
}

TEST(ClockSweepTest, EndsAtTheLowestClock) {
  ClockSweep sweep({1400_MHz, 1300_MHz}, {});
  EXPECT_EQ(SweepAll(sweep, 140_W).size(), 2U);
  EXPECT_TRUE(sweep.AtLowest());
}

TEST(ClockSweepTest, DominatedPointsAreDroppedButNotTheHighestClock) {
  PipelineProfile profile{.stages = 1, .blocking_power = 10_W};
  profile.instructions.push_back({.stage = 0,
                                  .instruction = "forward",
                                  .points = {{1400_MHz, Seconds(1.1), Joules(300)},
                                             {1300_MHz, Seconds(1.0), Joules(290)},
                                             {1200_MHz, Seconds(1.2), Joules(260)},
                                             {1100_MHz, Seconds(1.3), Joules(270)}}});
  DropDominated(profile);
  const auto& points = profile.instructions[0].points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].clock, 1400_MHz);  // Slower and more expensive, but the baseline.
  EXPECT_EQ(points[1].clock, 1300_MHz);
  EXPECT_EQ(points[2].clock, 1200_MHz);
}

}  // namespace clock_sweep_test
}  // namespace zeus::pipeline
