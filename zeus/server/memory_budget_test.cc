#include "zeus/server/memory_budget.h"

#include <gtest/gtest.h>

#include <optional>

namespace zeus::server {
namespace memory_budget_test {

TEST(MemoryBudgetTest, SharesNeverExceedItTogether) {
  MemoryBudget budget(100);
  MemoryBudget::Share first(budget);
  EXPECT_TRUE(first.GrowTo(60));
  MemoryBudget::Share second(budget);
  EXPECT_FALSE(second.GrowTo(41));
  EXPECT_TRUE(second.GrowTo(40));
  EXPECT_FALSE(first.GrowTo(61));
  EXPECT_TRUE(first.GrowTo(10));  // It does not shrink.
  EXPECT_EQ(budget.used(), 100U);
}

TEST(MemoryBudgetTest, AShareThatIsGoneIsGivenBack) {
  MemoryBudget budget(100);
  std::optional<MemoryBudget::Share> first(std::in_place, budget);
  EXPECT_TRUE(first->GrowTo(100));
  MemoryBudget::Share second(budget);
  EXPECT_FALSE(second.GrowTo(1));
  first.reset();
  EXPECT_TRUE(second.GrowTo(1));
  EXPECT_EQ(budget.used(), 1U);
}

TEST(MemoryBudgetTest, TheOnlyUserGetsMoreThanTheLimit) {
  MemoryBudget budget(100);
  MemoryBudget::Share only(budget);
  EXPECT_TRUE(only.GrowTo(50));
  EXPECT_TRUE(only.GrowTo(500));
  MemoryBudget::Share late(budget);
  EXPECT_FALSE(late.GrowTo(1));
}

}  // namespace memory_budget_test
}  // namespace zeus::server
