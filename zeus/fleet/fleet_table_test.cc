#include "zeus/fleet/fleet_table.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "zeus/base/json.h"

namespace zeus::fleet::fleet_table_test {
namespace {

using namespace zeus::literals;

class FleetTableTest : public ::testing::Test {
 protected:
  Json Nodes(FleetTable::Past past = FleetTable::Past::kOmitted) {
    auto json = ParseJson(table_.Document(past));
    EXPECT_TRUE(json.ok());
    return json.ok() ? std::move(json).value()["nodes"] : Json();
  }

  VirtualClock clock_;
  FleetTable table_{clock_};
};

TEST_F(FleetTableTest, ANodeIsToldWithItsAge) {
  table_.Add("a:1", "http://a:1");
  table_.Report("a:1", {.host = "a", .gpus = 8, .power = 1234_W, .idle = 50_W});
  clock_.Advance(Seconds(4));
  const Json node = Nodes()[0];
  EXPECT_EQ(node["name"], "a:1");
  EXPECT_EQ(node["url"], "http://a:1");
  EXPECT_EQ(node["power_watts"], 1234.0);
  EXPECT_EQ(node["idle_watts"], 50.0);
  EXPECT_EQ(node["age_seconds"], 4.0);
  EXPECT_FALSE(node.contains("past_watts"));
}

TEST_F(FleetTableTest, ANodeThatFailsKeepsItsNumbersAndSaysWhy) {
  table_.Add("a:1", "");
  table_.Fail("a:1", "nobody \"answers\"");
  EXPECT_FALSE(Nodes()[0].contains("power_watts"));
  EXPECT_EQ(Nodes()[0]["trouble"], "nobody \"answers\"");
  table_.Report("a:1", {.power = 100_W});
  EXPECT_EQ(Nodes()[0]["trouble"], "");
  table_.Fail("a:1", "gone");
  EXPECT_EQ(Nodes()[0]["power_watts"], 100.0);
  const Json past = Nodes(FleetTable::Past::kIncluded)[0]["past_watts"];
  EXPECT_EQ(past, Json::array({nullptr, 100, nullptr}));
}

TEST_F(FleetTableTest, ThePastOfADayTakesTheMemoryOfTenMinutes) {
  table_.Report("a", {.power = 1_W, .past = {10_W, std::nullopt}});
  EXPECT_EQ(Nodes(FleetTable::Past::kIncluded)[0]["past_watts"], Json::array({10, nullptr, 1}));
  for (int look = 0; look < 8640; ++look) table_.Report("a", {.power = 2_W, .past = {99_W}});
  EXPECT_EQ(Nodes(FleetTable::Past::kIncluded)[0]["past_watts"].size(), FleetTable::kPast);
}

}  // namespace
}  // namespace zeus::fleet::fleet_table_test
