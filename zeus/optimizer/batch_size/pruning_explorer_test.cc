#include "zeus/optimizer/batch_size/pruning_explorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "zeus/base/json.h"

namespace zeus {
namespace pruning_explorer_test {

using ::testing::ElementsAre;

struct Outcome {
  bool converged = true;
  Joules cost{};
};

// Explores to the end; `outcome` gives the result of each run by its number from 0.
std::vector<int> Explore(PruningExplorer& explorer,
                         const std::function<Outcome(int batch_size, int run)>& outcome) {
  std::vector<int> explored;
  while (const auto next = explorer.Next()) {
    const Outcome result = outcome(*next, static_cast<int>(explored.size()));
    explored.push_back(*next);
    explorer.Observe(result.converged, result.cost);
  }
  return explored;
}

TEST(PruningExplorerTest, ExploresTheDefaultThenSmallerThenLargerOnesTwice) {
  PruningExplorer explorer({8, 16, 32, 64}, 32, 2);
  const auto explored = Explore(explorer, [](int batch_size, int) {
    return Outcome{.cost = Joules(batch_size == 32 ? 1 : 2)};
  });
  EXPECT_THAT(explored, ElementsAre(32, 16, 8, 64, 32, 16, 8, 64));
  EXPECT_THAT(explorer.candidates(), ElementsAre(8, 16, 32, 64));
}

TEST(PruningExplorerTest, StopsADirectionAtTheFirstFailure) {
  PruningExplorer explorer({8, 16, 32, 64}, 32, 2);
  const auto explored = Explore(explorer, [](int batch_size, int) {
    return Outcome{.converged = batch_size != 16, .cost = Joules(batch_size == 32 ? 1 : 2)};
  });
  EXPECT_THAT(explored, ElementsAre(32, 16, 64, 32, 64));
  EXPECT_THAT(explorer.candidates(), ElementsAre(32, 64));
  EXPECT_TRUE(explorer.Dropped(8));
  EXPECT_TRUE(explorer.Dropped(16));
}

TEST(PruningExplorerTest, TheCheapestOfARoundIsTheDefaultOfTheNext) {
  PruningExplorer explorer({8, 16, 32, 64}, 32, 2);
  const auto explored = Explore(
      explorer, [](int batch_size, int) { return Outcome{.cost = Joules(100.0 - batch_size)}; });
  EXPECT_THAT(explored, ElementsAre(32, 16, 8, 64, 64, 32, 16, 8));
}

TEST(PruningExplorerTest, ADefaultThatFailsOnlyStopsTheWayDown) {
  PruningExplorer explorer({8, 16, 32, 64}, 32, 1);
  const auto explored =
      Explore(explorer, [](int batch_size, int) { return Outcome{.converged = batch_size > 32}; });
  EXPECT_THAT(explored, ElementsAre(32, 64));
  EXPECT_THAT(explorer.candidates(), ElementsAre(64));
}

TEST(PruningExplorerTest, WhatConvergedBeforeStaysWhenARoundFailsAltogether) {
  PruningExplorer explorer({8, 16, 32, 64}, 32, 2);
  const auto explored =
      Explore(explorer, [](int, int run) { return Outcome{.converged = run < 4}; });
  EXPECT_THAT(explored, ElementsAre(32, 16, 8, 64, 8, 16));
  EXPECT_THAT(explorer.candidates(), ElementsAre(8, 16, 32, 64));
}

TEST(PruningExplorerTest, GoesOnWithWhatWasNotReachedUntilSomethingConverges) {
  PruningExplorer explorer({8, 16, 32, 64, 128}, 32, 1);
  const auto explored =
      Explore(explorer, [](int batch_size, int) { return Outcome{.converged = batch_size == 8}; });
  EXPECT_THAT(explored, ElementsAre(32, 64, 16, 128, 8));
  EXPECT_THAT(explorer.candidates(), ElementsAre(8));
}

TEST(PruningExplorerTest, EndsWithTheDefaultWhenNothingConverges) {
  PruningExplorer explorer({8, 16, 32}, 16, 2);
  const auto explored = Explore(explorer, [](int, int) { return Outcome{.converged = false}; });
  EXPECT_THAT(explored, ElementsAre(16, 32, 8));
  EXPECT_THAT(explorer.candidates(), ElementsAre(16));
}

TEST(PruningExplorerTest, AStateThatEndedWithAnotherBatchSizeEndsWithTheDefault) {
  const Json state = {{"rounds_left", 0},
                      {"default", 8},
                      {"any_converged", false},
                      {"candidates", {8}},
                      {"explored", Json::array()}};
  const auto explorer = PruningExplorer::Restore(PruningExplorer({8, 16, 32}, 16, 2), state);
  ASSERT_TRUE(explorer.ok());
  EXPECT_THAT(explorer.value().candidates(), ElementsAre(16));
}

TEST(PruningExplorerTest, WithoutRoundsEveryBatchSizeIsLeft) {
  const PruningExplorer explorer({8, 16, 32}, 16, 0);
  EXPECT_EQ(explorer.Next(), std::nullopt);
  EXPECT_THAT(explorer.candidates(), ElementsAre(8, 16, 32));
}

}  // namespace pruning_explorer_test
}  // namespace zeus
