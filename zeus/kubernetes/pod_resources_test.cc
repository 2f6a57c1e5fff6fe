#include "zeus/kubernetes/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace zeus::kubernetes {
namespace pod_resources_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Varint(std::size_t number) {
  std::string bytes;
  for (; number > 127; number >>= 7U) bytes += static_cast<char>((number & 127U) | 128U);
  return bytes + static_cast<char>(number);
}

std::string Text(unsigned number, std::string_view text) {
  return Varint(number << 3U | 2U) + Varint(text.size()) + std::string(text);
}

std::string Number(unsigned number, std::size_t value) {
  return Varint(number << 3U) + Varint(value);
}

std::string Devices(std::string_view resource, const std::vector<std::string>& ids) {
  std::string message = Text(1, resource);
  for (const std::string& id : ids) message += Text(2, id);
  return Text(2, message + Text(3, Text(1, Number(1, 1))));  // Topology, which nobody reads.
}

std::string Container(std::string_view name, std::string_view content) {
  return Text(3, Text(1, name) + std::string(content) + Number(3, 7));  // CPU ids.
}

std::string Pod(std::string_view name_space, std::string_view name, std::string_view containers) {
  return Text(1, Text(1, name) + Text(2, name_space) + std::string(containers));
}

std::string ErrorOf(std::string_view message) {
  const auto parsed = ParsePodResources(message);
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(PodResourcesTest, ContainersWithDevicesInTheOrderOfTheMessage) {
  const auto parsed =
      ParsePodResources(Pod("team-a", "train-0",
                            Container("main", Devices("nvidia.com/gpu", {"GPU-1", "GPU-2"})) +
                                Container("sidecar", "")) +
                        Pod("kube-system", "coredns", Container("coredns", "")) +
                        Pod("team-b", "serve-1",
                            Container("llm", Devices("nvidia.com/mig-1g.5gb", {"MIG-1"}) +
                                                 Devices("rdma/hca", {"mlx5_0"}))));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_THAT(
      parsed.value(),
      ElementsAre(ContainerResources{.name_space = "team-a",
                                     .pod = "train-0",
                                     .container = "main",
                                     .plugin_devices = {{"nvidia.com/gpu", {"GPU-1", "GPU-2"}}}},
                  ContainerResources{.name_space = "team-b",
                                     .pod = "serve-1",
                                     .container = "llm",
                                     .plugin_devices = {{"nvidia.com/mig-1g.5gb", {"MIG-1"}},
                                                        {"rdma/hca", {"mlx5_0"}}}}));
}

TEST(PodResourcesTest, ClaimedDevicesOfDynamicResourceAllocation) {
  const std::string claim =
      Text(2, "claim") + Text(3, "team-a") +
      Text(4, Text(1, Text(1, "cdi=gpu-0")) + Text(2, "gpu.nvidia.com") + Text(3, "node-1") +
                  Text(4, "gpu-0")) +
      Text(4, Text(1, Text(1, "cdi=gpu-1")));  // As a kubelet before 1.31 has it.
  const auto parsed = ParsePodResources(Pod("team-a", "p", Container("c", Text(5, claim))));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed.value().size(), 1U);
  EXPECT_THAT(parsed.value()[0].claimed,
              ElementsAre(ClaimedDevice{"gpu.nvidia.com", "node-1", "gpu-0"}));
}

TEST(PodResourcesTest, AnEmptyNodeAndFieldsOfNewerVersions) {
  EXPECT_THAT(ParsePodResources("").value(), IsEmpty());
  EXPECT_THAT(
      ParsePodResources(Number(9, 1) + Text(8, "new") + Pod("n", "p", Number(7, 1) + Text(9, "x")))
          .value(),
      IsEmpty());
}

TEST(PodResourcesTest, NamesThatAreNoneOfKubernetesAreRefused) {
  const std::string gpu = Devices("nvidia.com/gpu", {"GPU-1"});
  EXPECT_THAT(ErrorOf(Pod("a\"b", "p", Container("c", gpu))), HasSubstr("name of a namespace"));
  EXPECT_THAT(ErrorOf(Pod("n", "p/q", Container("c", gpu))), HasSubstr("name of a pod"));
  EXPECT_THAT(ErrorOf(Pod("n", std::string(254, 'p'), Container("c", gpu))), HasSubstr("pod"));
  EXPECT_THAT(ErrorOf(Pod("n", "p", Container("", gpu))), HasSubstr("name of a container"));
  EXPECT_THAT(ErrorOf(Pod("n", "p", Container("c", Devices("nvidia.com/gpu", {"a\nb"})))),
              HasSubstr("id of a device"));
}

TEST(PodResourcesTest, MalformedAndExcessiveMessagesAreRefused) {
  const std::string whole =
      Pod("n", "p", Container("c", Devices("nvidia.com/gpu", {"GPU-1", "GPU-2"})));
  // Only the cuts between two pods are messages, and there is one pod.
  for (std::size_t length = 1; length < whole.size(); ++length)
    EXPECT_NE(ErrorOf(whole.substr(0, length)), "") << length;
  std::string many;
  for (int i = 0; i < 16385; ++i) many += Container("c", Devices("r", {"d"}));
  EXPECT_THAT(ErrorOf(Pod("n", "p", many)), HasSubstr("16384 containers"));
  EXPECT_THAT(
      ErrorOf(Pod("n", "p", Container("c", Devices("r", std::vector<std::string>(65537, "d"))))),
      HasSubstr("65536 devices"));
}

TEST(PodResourcesTest, IdsOfDevices) {
  const std::vector<std::pair<std::string, DeviceId>> cases = {
      {"GPU-1b2c", {"GPU-1b2c", ""}},
      {"GPU-1b2c::3", {"GPU-1b2c", ""}},
      {"MIG-77aa", {"", "MIG-77aa"}},
      {"MIG-77aa::0", {"", "MIG-77aa"}},
      {"MIG-GPU-1b2c/7/0", {"GPU-1b2c", "MIG-GPU-1b2c/7/0"}},
      {"0000:19:00.0", {"0000:19:00.0", ""}},
      {"", {"", ""}},
  };
  for (const auto& [id, expected] : cases) EXPECT_EQ(ParseDeviceId(id), expected) << id;
}

}  // namespace pod_resources_test
}  // namespace zeus::kubernetes
