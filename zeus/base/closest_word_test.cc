#include "zeus/base/closest_word.h"

#include <gtest/gtest.h>

namespace zeus {
namespace closest_word_test {

TEST(ClosestWordTest, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("run", "run"), 0U);
  EXPECT_EQ(EditDistance("rn", "run"), 1U);
  EXPECT_EQ(EditDistance("runn", "run"), 1U);
  EXPECT_EQ(EditDistance("ran", "run"), 1U);
  EXPECT_EQ(EditDistance("rnu", "run"), 1U);
  EXPECT_EQ(EditDistance("", "run"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
}

TEST(ClosestWordTest, FindsTheWordThatWasMeant) {
  const std::vector<std::string> verbs = {"monitor", "run", "replay", "train"};
  EXPECT_EQ(ClosestWord("rn", verbs), "run");
  EXPECT_EQ(ClosestWord("montior", verbs), "monitor");
  EXPECT_EQ(ClosestWord("trian", verbs), "train");
  EXPECT_EQ(ClosestWord("replya", verbs), "replay");
}

TEST(ClosestWordTest, AWordThatIsFarFromAllIsNoneOfThem) {
  const std::vector<std::string> verbs = {"monitor", "run", "replay", "train"};
  EXPECT_EQ(ClosestWord("banana", verbs), std::nullopt);
  EXPECT_EQ(ClosestWord("x", verbs), std::nullopt);
  EXPECT_EQ(ClosestWord("", verbs), std::nullopt);
  EXPECT_EQ(ClosestWord(std::string(1 << 20, 'r'), verbs), std::nullopt);
  EXPECT_EQ(ClosestWord("run", {}), std::nullopt);
}

}  // namespace closest_word_test
}  // namespace zeus
