#include "zeus/client/node/open_node.h"

#include <gtest/gtest.h>

#include <map>

namespace zeus::client {
namespace open_node_test {

OpenNodeOptions With(std::map<std::string, std::string> variables, Privilege privilege) {
  return {.environment = [variables](const std::string& name) -> std::optional<std::string> {
            const auto found = variables.find(name);
            if (found == variables.end()) return std::nullopt;
            return found->second;
          },
          .default_socket = "/nowhere/zeusd.sock",
          .privilege = privilege};
}

TEST(OpenNodeTest, ADaemonThatTheEnvironmentNamesIsUsedAlsoByRoot) {
  SystemClock clock;
  const auto way =
      ChooseWay(clock, With({{"ZEUSD_SOCK_PATH", "/x/zeusd.sock"}, {"ZEUSD_TOKEN", "t"}},
                            Privilege::kRoot))
          .value();
  EXPECT_TRUE(way.through_daemon);
  EXPECT_EQ(way.address.url, "unix:/x/zeusd.sock");
  EXPECT_EQ(way.address.board_socket, "/x/board.sock");
  EXPECT_EQ(way.address.token, "t");
}

TEST(OpenNodeTest, ADaemonOverTheNetworkHasNoBoard) {
  SystemClock clock;
  const auto way =
      ChooseWay(clock, With({{"ZEUSD_HOST_PORT", "node7:4938"}}, Privilege::kUser)).value();
  EXPECT_EQ(way.address.url, "http://node7:4938");
  EXPECT_TRUE(way.address.board_socket.empty());
  EXPECT_FALSE(ChooseWay(clock, With({{"ZEUSD_HOST_PORT", "no port:x"}}, Privilege::kUser)).ok());
}

TEST(OpenNodeTest, WithoutADaemonTheDevicesAreOpenedDirectly) {
  SystemClock clock;
  for (const Privilege privilege : {Privilege::kRoot, Privilege::kUser}) {
    const auto way = ChooseWay(clock, With({}, privilege)).value();
    EXPECT_FALSE(way.through_daemon);
    EXPECT_FALSE(way.reason.empty());
  }
}

TEST(OpenNodeTest, ADaemonThatIsNamedAndDoesNotAnswerIsAnErrorThatSaysWhy) {
  VirtualClock clock;  // A daemon that is away is waited for.
  const auto node = OpenNode(RealSurroundings(clock),
                             With({{"ZEUSD_SOCK_PATH", "/nowhere/zeusd.sock"}}, Privilege::kUser));
  ASSERT_FALSE(node.ok());
  EXPECT_NE(node.error().message.find("ZEUSD_SOCK_PATH"), std::string::npos);
}

}  // namespace open_node_test
}  // namespace zeus::client
