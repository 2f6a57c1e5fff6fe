#include "apps/zeus/node/node_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/zeus/node/top_table.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/client/node/node_daemon_client.h"
#include "zeus/client/node/testing/fake_daemon.h"

namespace zeus::cli {
namespace node_text_test {

using namespace zeus::literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class NodeTextTest : public ::testing::Test {
 protected:
  VirtualClock clock_;
  zeus::testing::FakeDaemon daemon_;
  client::NodeDaemonClient client_{daemon_.transport(), clock_};
};

TEST_F(NodeTextTest, TheNodeShowsPowerLimitsAndWhatTheUserMayTurn) {
  const Json identity{{"subject", "uid:1001"}, {"scopes", {"gpu-read", "gpu-control"}}};
  const std::string text = ToText(client_.Node().value(), client_.Readings().value(), identity);
  EXPECT_THAT(text, AllOf(HasSubstr("uid:1001"), HasSubstr("gpu-read, gpu-control"),
                          HasSubstr("A100"), HasSubstr("212 W"), HasSubstr("300 W"),
                          HasSubstr("power limit 150 W to 300 W"), HasSubstr("GPU-2")));
}

TEST_F(NodeTextTest, AGpuThatIsLostSaysSo) {
  daemon_.node["gpus"][1]["lost"] = true;
  EXPECT_THAT(ToText(client_.Node().value(), {}, Json()), HasSubstr("lost"));
}

TEST_F(NodeTextTest, LeasesShowWhatWasAskedForAndWhatHolds) {
  EXPECT_EQ(ToText(client_.Leases().value()), "There are no leases.\n");
  ASSERT_TRUE(
      client_
          .CreateLease({.name = "bert",
                        .requests = {{.key = {.device = "GPU-1"}, .demand = wire::Exactly{200_W}}}})
          .ok());
  EXPECT_THAT(ToText(client_.Leases().value()),
              AllOf(HasSubstr("lease_1"), HasSubstr("bert"), HasSubstr("process 4711"),
                    HasSubstr("GPU-1"), HasSubstr("power limit"), HasSubstr("200 W")));
}

TEST_F(NodeTextTest, AKnobSaysWhoBindsIt) {
  wire::KnobView knob{.request = {.key = {.device = "GPU-1"}, .demand = wire::Exactly{200_W}},
                      .effective = wire::KnobValue(Setting(180_W)),
                      .enforced = wire::KnobValue(Setting(170_W)),
                      .bound_by = "lease_7",
                      .bound_by_class = "site",
                      .bound_by_name = "cluster budget"};
  EXPECT_THAT(KnobText(knob), AllOf(HasSubstr("200 W"), HasSubstr("180 W"), HasSubstr("170 W"),
                                    HasSubstr("cluster budget (site)"), Not(HasSubstr("lease_7"))));
  knob.overruled = true;
  EXPECT_THAT(KnobText(knob), HasSubstr("overruled"));
}

TEST_F(NodeTextTest, TopShowsDevicesWithTheirLeasesInTheOrderThatIsAskedFor) {
  ASSERT_TRUE(
      client_
          .CreateLease({.name = "bert",
                        .requests = {{.key = {.device = "GPU-2"}, .demand = wire::Exactly{200_W}}}})
          .ok());
  TopState state{.readings = client_.Readings().value(), .leases = client_.Leases().value()};
  TopView view;
  auto rows = TopRows(state, view, TopFooter::kNone);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_THAT(rows[0], AllOf(HasSubstr("2 devices"), HasSubstr("292 W"), HasSubstr("1 leases")));
  EXPECT_THAT(rows[2], AllOf(HasSubstr("gpu:0"), HasSubstr("212 W"), Not(HasSubstr("bert"))));
  EXPECT_THAT(rows[3], AllOf(HasSubstr("gpu:1"), HasSubstr("80 W"), HasSubstr("bert (uid:1001)")));

  std::swap(state.readings[0], state.readings[1]);
  view.order = TopView::Order::kPower;
  EXPECT_THAT(TopRows(state, view, TopFooter::kNone)[2], HasSubstr("gpu:0"));
  view.filter = "bert";
  rows = TopRows(state, view, TopFooter::kKeys);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_THAT(rows[2], HasSubstr("gpu:1"));
  EXPECT_THAT(rows[3], HasSubstr("[bert]"));
}

TEST(TopKeysTest, KeysChooseOrderAndFilterAndQuit) {
  TopView view;
  TopKeys keys(view);
  EXPECT_TRUE(keys.Press('p'));
  EXPECT_EQ(view.order, TopView::Order::kPower);
  for (const char key : std::string_view("/q1x\x7f\n")) EXPECT_TRUE(keys.Press(key));
  EXPECT_EQ(view.filter, "q1");
  EXPECT_FALSE(keys.typing());
  EXPECT_TRUE(keys.Press('\x1b'));
  EXPECT_EQ(view.filter, "");
  EXPECT_FALSE(keys.Press('q'));
}

TEST(CutToWidthTest, ALineKeepsWhatFitsAndNoPartOfACharacter) {
  EXPECT_EQ(CutToWidth("abc", 5), "abc");
  EXPECT_EQ(CutToWidth("abc", 3), "abc");
  EXPECT_EQ(CutToWidth("31 °C, warm", 4), "31 °");
  EXPECT_EQ(CutToWidth("31 °C, warm", 3), "31 ");
  EXPECT_EQ(CutToWidth("abc", 0), "");
}

}  // namespace node_text_test
}  // namespace zeus::cli
