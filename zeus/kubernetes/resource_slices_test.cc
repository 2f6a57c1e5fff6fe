#include "zeus/kubernetes/resource_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "zeus/base/json.h"

namespace zeus::kubernetes {
namespace resource_slices_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// As the driver of NVIDIA publishes them: https://github.com/NVIDIA/k8s-dra-driver-gpu
const std::string kSlices = R"({"kind": "ResourceSliceList", "items": [
  {"spec": {"driver": "gpu.nvidia.com", "nodeName": "node-1", "pool": {"name": "node-1"}, "devices": [
    {"name": "gpu-0", "attributes": {"uuid": {"string": "GPU-1"}, "index": {"int": 0}}},
    {"name": "gpu-0-mig-9", "attributes": {"uuid": {"string": "MIG-1"},
      "gpu.nvidia.com/parentUUID": {"string": "GPU-1"}}},
    {"name": "unknown", "attributes": {"brand": {"string": "x"}}}]}},
  {"spec": {"driver": "gpu.amd.com", "nodeName": "node-1", "pool": {"name": "node-1"}, "devices": [
    {"name": "gpu-1", "basic": {"attributes": {"pciAddr": {"string": "0000:19:00.0"}}}}]}},
  {"spec": {"driver": "empty", "pool": {"name": "node-1"}}}]})";

TEST(ResourceSlicesTest, DevicesAreKnownByBoardOrAddress) {
  const auto parsed = ParseResourceSlices(ParseJson(kSlices).value());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_THAT(parsed.value(),
              ElementsAre(Pair(ClaimedDevice{"gpu.amd.com", "node-1", "gpu-1"}, "0000:19:00.0"),
                          Pair(ClaimedDevice{"gpu.nvidia.com", "node-1", "gpu-0"}, "GPU-1"),
                          Pair(ClaimedDevice{"gpu.nvidia.com", "node-1", "gpu-0-mig-9"}, "GPU-1")));
}

TEST(ResourceSlicesTest, SomethingElseIsRefused) {
  for (const char* text :
       {"{}", R"({"items": [{}]})", R"({"items": [{"spec": {"driver": "d"}}]})",
        R"({"items": [{"spec": {"driver": "d", "pool": {"name": "p"}, "devices": [{}]}}]})"})
    EXPECT_FALSE(ParseResourceSlices(ParseJson(text).value()).ok()) << text;
}

TEST(ResourceSlicesTest, TheServerIsAskedForThisNodeWhenADeviceIsNotKnownAndNotTooOften) {
  VirtualClock clock;
  std::vector<std::string> asked;
  ResourceSlices slices(clock, "node-1", [&](const std::string& path) -> Result<std::string> {
    asked.push_back(path);
    if (path.find("/v1beta1/") == std::string::npos)
      return Error{ErrorCode::kNotFound, "no such version"};
    return kSlices;
  });
  EXPECT_EQ(slices.Find({"gpu.nvidia.com", "node-1", "gpu-0"}), "GPU-1");
  EXPECT_EQ(asked.size(), 3U) << "v1, v1beta2 and v1beta1";
  EXPECT_THAT(asked.back(), HasSubstr("fieldSelector=spec.nodeName%3Dnode-1"));
  EXPECT_EQ(slices.Find({"gpu.nvidia.com", "node-1", "gpu-7"}), std::nullopt);
  EXPECT_EQ(asked.size(), 3U) << "it was asked just now";
  clock.Advance(Seconds(10));
  EXPECT_EQ(slices.Find({"gpu.nvidia.com", "node-1", "gpu-7"}), std::nullopt);
  EXPECT_EQ(asked.size(), 6U);
  clock.Advance(Seconds(3600));
  EXPECT_EQ(slices.Find({"gpu.amd.com", "node-1", "gpu-1"}), "0000:19:00.0");
  EXPECT_EQ(asked.size(), 6U) << "it is known";
}

TEST(ResourceSlicesTest, AServerThatRefusesIsAskedAgainLater) {
  VirtualClock clock;
  int asked = 0;
  ResourceSlices slices(clock, "node-1", [&](const std::string&) -> Result<std::string> {
    if (++asked == 1) return Error{ErrorCode::kUnavailable, "403"};
    return kSlices;
  });
  EXPECT_EQ(slices.Find({"gpu.nvidia.com", "node-1", "gpu-0"}), std::nullopt);
  EXPECT_EQ(asked, 1) << "other versions would be refused, too";
  clock.Advance(Seconds(10));
  EXPECT_EQ(slices.Find({"gpu.nvidia.com", "node-1", "gpu-0"}), "GPU-1");
}

TEST(ResourceSlicesTest, OutsideOfAPodThereIsNone) {
  VirtualClock clock;
  EXPECT_FALSE(ResourceSlices::OfThisPod(clock, [](const std::string&) { return std::nullopt; }));
}

}  // namespace resource_slices_test
}  // namespace zeus::kubernetes
