#include "zeus/server/connection_places.h"

#include <gtest/gtest.h>

namespace zeus::server {
namespace connection_places_test {

using Place = ConnectionPlaces::Place;

TEST(ConnectionPlacesTest, OneAddressDoesNotGetAllPlaces) {
  ConnectionPlaces places({.connections = 4, .per_address = 2, .reserve = 1});
  EXPECT_EQ(places.Take("10.0.0.1"), Place::kOrdinary);
  EXPECT_EQ(places.Take("10.0.0.1"), Place::kOrdinary);
  EXPECT_EQ(places.Take("10.0.0.1"), Place::kReserve);
  EXPECT_EQ(places.Take("10.0.0.1"), Place::kNone);
  EXPECT_EQ(places.Take("10.0.0.2"), Place::kOrdinary);
  places.GiveBack(Place::kOrdinary, "10.0.0.1");
  EXPECT_EQ(places.Take("10.0.0.1"), Place::kOrdinary);
}

TEST(ConnectionPlacesTest, AUnixSocketIsNoAddress) {
  ConnectionPlaces places({.connections = 3, .per_address = 1, .reserve = 0});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(places.Take(""), Place::kOrdinary);
  EXPECT_EQ(places.Take(""), Place::kNone);
}

TEST(ConnectionPlacesTest, TheReserveComesBack) {
  ConnectionPlaces places({.connections = 1, .per_address = 1, .reserve = 1});
  EXPECT_EQ(places.Take("a"), Place::kOrdinary);
  EXPECT_EQ(places.Take("b"), Place::kReserve);
  EXPECT_EQ(places.Take("c"), Place::kNone);
  places.GiveBack(Place::kReserve, "b");
  EXPECT_EQ(places.Take("c"), Place::kReserve);
  places.GiveBack(Place::kOrdinary, "a");
  EXPECT_EQ(places.Take("c"), Place::kOrdinary);
}

}  // namespace connection_places_test
}  // namespace zeus::server
