#include "zeus/budget/testing/cluster_simulation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

#include "zeus/base/text.h"

namespace zeus::budget {
namespace cluster_simulation_test {
namespace {

using namespace std::chrono_literals;

std::uint64_t NumberFrom(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  const auto number = ParseUnsigned(text == nullptr ? "" : text);
  return number.ok() ? number.value() : otherwise;
}

// The number of random runs: ZEUS_BUDGET_RUNS, or few enough for every test run. They begin with
// the seed ZEUS_BUDGET_SEED.
std::uint64_t Runs() { return NumberFrom("ZEUS_BUDGET_RUNS", 200); }

Dangers DrawDangers(Random& random) {
  const auto some = [&random](double most) {
    return random.Uniform() < 0.5 ? 0.0 : random.Uniform(0, most);
  };
  const auto seldom = [&random](double least, double most) {
    return random.Uniform() < 0.5 ? Seconds::max() : Seconds(random.Uniform(least, most));
  };
  return {.lost = some(0.4),
          .doubled = some(0.4),
          .late = some(0.3),
          .between_partitions = seldom(20, 200),
          .between_node_crashes = seldom(20, 200),
          .reboots = some(0.5),
          .crash_at_step = some(0.02),
          .store_fails = some(0.3),
          .clock_skew = some(0.01),
          .unguarded_nodes = random.Uniform() < 0.5};
}

TEST(ClusterSimulationTest, NoRandomRunGrantsMoreThanTheBudget) {
  std::uint64_t events = 0;
  std::uint64_t raises = 0;
  std::uint64_t server_starts = 0;
  std::uint64_t node_starts = 0;
  std::uint64_t falls = 0;
  const std::uint64_t first = NumberFrom("ZEUS_BUDGET_SEED", 1);
  for (std::uint64_t seed = first; seed < first + Runs(); ++seed) {
    Random random(seed);
    ClusterSimulation cluster({.seed = seed,
                               .racks = random.Below(4),
                               .nodes = 1 + random.Below(7),
                               .gpus = 1 + random.Below(4),
                               .duration = 200s,
                               .dangers = DrawDangers(random)});
    const ClusterSimulation::Outcome outcome = cluster.Run();
    ASSERT_THAT(outcome.violations, ::testing::IsEmpty());
    events += outcome.events;
    raises += outcome.raises;
    server_starts += outcome.server_starts;
    node_starts += outcome.node_starts;
    falls += outcome.budget_falls;
  }
  fmt::print(
      "{} runs, {} events: {} raised caps, {} starts of servers, {} of nodes, {} times a "
      "budget fell; 0 violations\n",
      Runs(), events, raises, server_starts, node_starts, falls);
  // A book that grants nothing would be safe, too.
  if (Runs() >= 100) {
    EXPECT_GT(raises, 10 * Runs());
  }
}

TEST(ClusterSimulationTest, WithoutTroubleALowerBudgetHoldsWithinFiveSeconds) {
  ClusterSimulation cluster({.seed = 7, .racks = 4, .nodes = 16, .gpus = 4, .duration = 400s});
  const ClusterSimulation::Outcome outcome = cluster.Run();
  EXPECT_THAT(outcome.violations, ::testing::IsEmpty());
  EXPECT_GT(outcome.budget_falls, 5U);
  EXPECT_GT(outcome.slowest_fall, 0s);
  EXPECT_LT(outcome.slowest_fall, 5s);
  fmt::print("slowest fall {:.2f} s, {:.0f} % of the budget used\n", outcome.slowest_fall.count(),
             100 * outcome.share_used);
}

}  // namespace
}  // namespace cluster_simulation_test
}  // namespace zeus::budget
