#include "zeus/ranks/rank_table.h"

#include <gtest/gtest.h>

#include <chrono>

namespace zeus {
namespace rank_table_test {

using namespace std::chrono_literals;

TimePoint At(Seconds since) { return TimePoint(since); }

RankShare Rank(int rank) { return {.rank = rank, .host = "n"}; }

RankShare Measured(int rank) {
  RankShare share = Rank(rank);
  share.measurement.emplace();
  return share;
}

TEST(RankTableTest, IsOverWhenAllHaveEndedAndCompleteWhenAllHaveDelivered) {
  RankTable table(2, {.absence = 10s, .measured_absence = 1s});
  table.Arrive(Rank(0));
  table.Arrive(Rank(1));
  table.End(0, At(5s));
  EXPECT_FALSE(table.Over(At(1000s)));  // Rank 1 runs as long as it likes.
  table.End(1, At(1000s));
  EXPECT_TRUE(table.Over(At(1000s)));
  EXPECT_FALSE(table.Complete(At(1000s)));
  table.Deliver(Measured(0), At(1000s));
  table.Deliver(Measured(1), At(1000s));
  EXPECT_TRUE(table.Complete(At(1000s)));
}

TEST(RankTableTest, ARankThatNeverCameIsAwaitedForAWhile) {
  RankTable table(2, {.absence = 10s, .measured_absence = 1s});
  table.Arrive(Rank(0));
  EXPECT_FALSE(table.Over(At(500s)));
  table.End(0, At(500s));
  EXPECT_FALSE(table.Over(At(500.9s)));
  EXPECT_TRUE(table.Over(At(501s)));  // The wait that follows is not measured.
  table.Deliver(Measured(0), At(501s));
  EXPECT_FALSE(table.Complete(At(509s)));
  EXPECT_TRUE(table.Complete(At(510s)));
  EXPECT_TRUE(table.Incomplete());
}

TEST(RankTableTest, ARankThatComesLateIsAwaitedUntilItHasDelivered) {
  RankTable table(2, {.absence = 10s, .measured_absence = 1s});
  table.Arrive(Rank(0));
  table.Deliver(Measured(0), At(500s));
  table.Arrive(Rank(1));
  EXPECT_FALSE(table.Complete(At(511s)));
  table.Deliver(Measured(1), At(600s));
  EXPECT_TRUE(table.Complete(At(600s)));
  EXPECT_FALSE(table.Incomplete());
}

TEST(RankTableTest, NobodyWaitsForALostRank) {
  RankTable table(3, {.absence = 10s, .measured_absence = 1s});
  for (int rank = 0; rank < 3; ++rank) table.Arrive(Rank(rank));
  table.Leave(1);
  EXPECT_FALSE(table.Present(1));
  table.End(0, At(1s));
  table.Deliver(Measured(2), At(1s));
  table.Leave(2);  // Its measurement stays.
  EXPECT_TRUE(table.Over(At(1s)));
  table.Deliver(Measured(0), At(1s));
  EXPECT_TRUE(table.Complete(At(1s)));
  EXPECT_TRUE(table.Shares()[2].measurement.has_value());
}

}  // namespace rank_table_test
}  // namespace zeus
