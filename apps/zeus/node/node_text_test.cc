#include "apps/zeus/node/node_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace node_text_test
}  // namespace zeus::cli
