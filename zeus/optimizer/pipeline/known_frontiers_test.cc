// Compares the solved frontiers of real pipelines with those that are known exactly.
#include <gtest/gtest.h>

#include <iostream>

#include "zeus/base/file.h"
#include "zeus/optimizer/pipeline/frontier_solver.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/testing/known_frontier.h"

namespace zeus::pipeline {
namespace known_frontiers_test {

// Larger problems take too long in a unit test; bench/pipeline compares the largest one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr int kMostComputations = 600;
#else
constexpr int kMostComputations = 10'000;
#endif

class KnownFrontiersTest : public ::testing::TestWithParam<CostKind> {};

void ExpectKnown(const std::string& name, CostKind kind) {
  SCOPED_TRACE(name);
  const auto text = ReadSmallFile(InstanceDirectory() / "instances" / (name + ".json"), 1 << 24);
  ASSERT_TRUE(text.ok());
  const auto problem = ParseInstance(text.value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  if (problem.value().graph.size() > kMostComputations) {
    std::cout << name << " is left to bench/pipeline: too large for a test\n";
    return;
  }
  const auto costs = MakeCosts(problem.value(), kind);
  ASSERT_TRUE(costs.ok()) << costs.error().message;
  const auto frontier = SolveFrontier(problem.value(), costs.value());
  ASSERT_TRUE(frontier.ok()) << frontier.error().message;

  const std::vector<KnownPoint> known = KnownFrontier(name, kind);
  ASSERT_FALSE(known.empty());
  EXPECT_EQ(frontier.value().slowest().ticks, known.front().ticks);
  EXPECT_EQ(frontier.value().fastest().ticks, known.back().ticks);
  const Watts blocking = problem.value().blocking_power * problem.value().stages;
  double worst = 0;
  for (const KnownPoint& point : known) {
    const Seconds time = costs.value().tick * static_cast<double>(point.ticks);
    const Joules ours = frontier.value().EnergyAt(point.ticks) - blocking * time;
    worst = std::max(worst, std::abs(ours / point.effective_energy - 1));
  }
  EXPECT_LT(worst, 1e-6);
}

TEST_P(KnownFrontiersTest, AreFoundAtEveryPointAndBothEnds) {
  const std::vector<std::string> names = InstanceNames();
  if (names.empty()) GTEST_SKIP() << "no instances in " << InstanceDirectory();
  for (const std::string& name : names) ExpectKnown(name, GetParam());
}

INSTANTIATE_TEST_SUITE_P(BothModels, KnownFrontiersTest,
                         ::testing::Values(CostKind::kExponential, CostKind::kHull),
                         [](const auto& model) {
                           return model.param == CostKind::kHull ? std::string("Hull")
                                                                 : std::string("Exponential");
                         });

}  // namespace known_frontiers_test
}  // namespace zeus::pipeline
