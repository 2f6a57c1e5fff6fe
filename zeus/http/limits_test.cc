#include "zeus/http/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <optional>

namespace zeus::http {
namespace limits_test {

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

using Place = ConnectionPlaces::Place;

TEST(ConnectionPlacesTest, OneAddressDoesNotGetAllPlaces) {
  ConnectionPlaces places({.connections = 4, .per_address = 2, .reserve = 1});
  EXPECT_EQ(places.Assign("10.0.0.1"), Place::kOrdinary);
  EXPECT_EQ(places.Assign("10.0.0.1"), Place::kOrdinary);
  EXPECT_EQ(places.Assign("10.0.0.1"), Place::kReserve);
  EXPECT_EQ(places.Assign("10.0.0.1"), Place::kNone);
  EXPECT_EQ(places.Assign("10.0.0.2"), Place::kOrdinary);
  places.Release(Place::kOrdinary, "10.0.0.1");
  EXPECT_EQ(places.Assign("10.0.0.1"), Place::kOrdinary);
}

TEST(ConnectionPlacesTest, AUnixSocketIsNoAddress) {
  ConnectionPlaces places({.connections = 3, .per_address = 1, .reserve = 0});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(places.Assign(""), Place::kOrdinary);
  EXPECT_EQ(places.Assign(""), Place::kNone);
}

TEST(ConnectionPlacesTest, TheReserveComesBack) {
  ConnectionPlaces places({.connections = 1, .per_address = 1, .reserve = 1});
  EXPECT_EQ(places.Assign("a"), Place::kOrdinary);
  EXPECT_EQ(places.Assign("b"), Place::kReserve);
  EXPECT_EQ(places.Assign("c"), Place::kNone);
  places.Release(Place::kReserve, "b");
  EXPECT_EQ(places.Assign("c"), Place::kReserve);
  places.Release(Place::kOrdinary, "a");
  EXPECT_EQ(places.Assign("c"), Place::kOrdinary);
}

TEST(OpenFilesTest, ConnectionsFollowTheLimitOfOpenFiles) {
  EXPECT_EQ(ConnectionsWithin(1024), 896U);
  EXPECT_EQ(ConnectionsWithin(4096), 3968U);
  EXPECT_EQ(ConnectionsWithin(100), 16U);
  EXPECT_EQ(ConnectionsWithin(RLIM_INFINITY), 10'000U);
  ::rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(ConnectionsByOpenFiles(), ConnectionsWithin(limit.rlim_cur));
}

}  // namespace limits_test
}  // namespace zeus::http
