#include "zeus/colosseum/draw.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace zeus::colosseum {
namespace draw_test {

TEST(DrawTest, EveryPairAndOrderIsAsLikely) {
  const std::vector<std::string> models = {"x", "y", "z"};
  Random random(7);
  std::map<std::string, int> counts;
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) {
    const auto pair = DrawPair(models, "", random);
    ASSERT_TRUE(pair.ok());
    ++counts[pair.value()[0] + pair.value()[1]];
  }
  EXPECT_EQ(counts.size(), 6U);
  for (const auto& [pair, count] : counts) EXPECT_NEAR(count, kDraws / 6, 500) << pair;
}

TEST(DrawTest, ThePreferredModelFightsOnEitherSide) {
  const std::vector<std::string> models = {"x", "y", "z"};
  Random random(7);
  std::map<std::string, int> counts;
  for (int i = 0; i < 4000; ++i) {
    const auto pair = DrawPair(models, "y", random).value();
    EXPECT_TRUE((pair[0] == "y") != (pair[1] == "y"));
    ++counts[pair[0] + pair[1]];
  }
  EXPECT_EQ(counts.size(), 4U);
  for (const auto& [pair, count] : counts) EXPECT_NEAR(count, 1000, 150) << pair;
}

TEST(DrawTest, TwoModelsAreNeeded) {
  Random random(7);
  EXPECT_EQ(DrawPair({"x"}, "", random).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(DrawPair({"x", "y"}, "q", random).error().code, ErrorCode::kNotFound);
}

TEST(DrawTest, IdsAreLongAndDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(MakeDuelId(SystemEntropy));
  EXPECT_EQ(ids.size(), 1000U);
  for (const std::string& id : ids) EXPECT_EQ(id.size(), 33U);
}

}  // namespace draw_test
}  // namespace zeus::colosseum
