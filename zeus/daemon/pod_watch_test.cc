#include "zeus/daemon/pod_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::daemon {
namespace pod_watch_test {

using namespace std::chrono_literals;
using kubernetes::ContainerResources;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

const std::string kUid = "7b1c2d3e-0011-2233-4455-66778899aabb";
const std::string kOtherUid = "00000000-0011-2233-4455-66778899aabb";

ContainerResources Container(const std::string& pod, const std::string& name,
                             std::vector<std::string> ids) {
  return {.name_space = "team-a",
          .pod = pod,
          .container = name,
          .plugin_devices = {{"nvidia.com/gpu", std::move(ids)}}};
}

// A node with two GPUs and the folders of a kubelet.
class PodWatchTest : public ::testing::Test {
 protected:
  PodWatchTest() {
    Folder("logs");
    Folder("cgroups/kubepods.slice/kubepods-burstable.slice");
  }

  void Folder(const std::string& name) {
    std::filesystem::create_directories(folder_.path() / name);
  }
  void Log(const std::string& pod, const std::string& uid) {
    Folder(fmt::format("logs/team-a_{}_{}", pod, uid));
  }
  std::string GroupOf(std::string uid) {
    std::ranges::replace(uid, '-', '_');
    return fmt::format(
        "cgroups/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice", uid);
  }
  void Run(const std::string& pod, const std::string& uid) {
    Log(pod, uid);
    Folder(GroupOf(uid));
  }
  void Vanish(const std::string& folder) { std::filesystem::remove_all(folder_.path() / folder); }

  // As if the time had come to ask.
  void Ask() {
    clock_.Advance(10s);
    watch_.Step();
  }
  std::vector<std::string> Running() const {
    std::vector<std::string> ids;
    for (const auto& job : jobs_.List())
      if (!job.ended) ids.push_back(job.spec.id);
    return ids;
  }

  zeus::testing::TemporaryDirectory folder_;
  VirtualClock clock_;
  JobBook jobs_{clock_, {.procfs = folder_.path()}};
  Result<std::vector<ContainerResources>> answer_ = std::vector<ContainerResources>();
  int asked_ = 0;
  int changes_ = 0;
  PodWatch watch_{clock_,
                  jobs_,
                  {"GPU-1", "GPU-2", "0000:19:00.0"},
                  {.list =
                       [this] {
                         ++asked_;
                         return answer_;
                       },
                   .board_of = [](const std::string& partition) -> std::optional<std::string> {
                     if (partition == "MIG-aa") return "GPU-2";
                     return std::nullopt;
                   },
                   .before_change = [this] { ++changes_; },
                   .logs = folder_.path() / "logs",
                   .cgroups = folder_.path() / "cgroups"}};
};

TEST_F(PodWatchTest, AContainerWithADeviceIsAJobAsLongAsItIsListed) {
  Run("train-0", kUid);
  answer_ = std::vector{Container("train-0", "main", {"GPU-1"})};
  watch_.Step();
  const auto job = jobs_.Find("k8s:team-a/train-0/main");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->spec.place, "pod:" + kUid);
  EXPECT_THAT(job->spec.devices, ElementsAre("GPU-1"));
  EXPECT_EQ(job->spec.labels.at("namespace"), "team-a");
  EXPECT_EQ(watch_.state().containers, 1U);
  EXPECT_EQ(changes_, 1);
  Ask();
  EXPECT_EQ(changes_, 1) << "nothing is new";
  answer_ = std::vector<ContainerResources>();
  Ask();
  EXPECT_THAT(Running(), IsEmpty());
  EXPECT_TRUE(jobs_.Find("k8s:team-a/train-0/main")) << "what it used is kept for a while";
}

TEST_F(PodWatchTest, ReplicasAndPartsAreTheirBoards) {
  Run("a", kUid);
  Run("b", kOtherUid);
  answer_ = std::vector{Container("a", "c", {"GPU-1::0", "GPU-1::3", "MIG-aa"}),
                        Container("b", "c", {"MIG-GPU-1/3/0", "0000:19:00.0"})};
  watch_.Step();
  EXPECT_THAT(jobs_.Find("k8s:team-a/a/c")->spec.devices, ElementsAre("GPU-1", "GPU-2"));
  EXPECT_THAT(jobs_.Find("k8s:team-a/b/c")->spec.devices, ElementsAre("0000:19:00.0", "GPU-1"));
  EXPECT_EQ(watch_.state().unknown_devices, 0U);
}

TEST_F(PodWatchTest, DevicesThatAreNoneOfThisNodeAreCountedAndNotGuessed) {
  Run("a", kUid);
  auto container = Container("a", "c", {"0", "GPU-9", "MIG-bb"});
  container.plugin_devices.push_back({"rdma/hca", {"mlx5_0"}});
  container.claimed = {{"gpu.nvidia.com", "node-1", "gpu-0"}};
  answer_ = std::vector{container};
  watch_.Step();
  EXPECT_THAT(Running(), IsEmpty());
  EXPECT_EQ(watch_.state().unknown_devices, 4U);
}

TEST_F(PodWatchTest, APodThatHasEndedAndIsListedStillIsNoJob) {
  Log("done-0", kOtherUid);
  Run("train-0", kUid);
  answer_ =
      std::vector{Container("done-0", "main", {"GPU-1"}), Container("train-0", "main", {"GPU-1"})};
  watch_.Step();
  EXPECT_THAT(Running(), ElementsAre("k8s:team-a/train-0/main"));
  Vanish(GroupOf(kUid));
  Ask();
  EXPECT_THAT(Running(), IsEmpty());
}

TEST_F(PodWatchTest, APodIsAskedForWhenItsGroupAppears) {
  answer_ = std::vector{Container("train-0", "main", {"GPU-1"})};
  watch_.Step();
  EXPECT_THAT(Running(), IsEmpty());
  clock_.Advance(1s);
  watch_.Step();
  EXPECT_EQ(asked_, 1) << "nothing has changed";
  Run("train-0", kUid);
  clock_.Advance(1s);
  watch_.Step();
  EXPECT_EQ(asked_, 2);
  EXPECT_THAT(Running(), ElementsAre("k8s:team-a/train-0/main"));
}

TEST_F(PodWatchTest, ANewPodOfTheSameNameIsANewJob) {
  Run("web-0", kUid);
  answer_ = std::vector{Container("web-0", "main", {"GPU-1"})};
  watch_.Step();
  Vanish(GroupOf(kUid));
  Run("web-0", kOtherUid);
  Ask();
  EXPECT_EQ(jobs_.Find("k8s:team-a/web-0/main")->spec.place, "pod:" + kOtherUid);
  EXPECT_THAT(Running(), ElementsAre("k8s:team-a/web-0/main"));
}

TEST_F(PodWatchTest, WithoutFoldersTheListAloneDecides) {
  Vanish("logs");
  Vanish("cgroups");
  answer_ = std::vector{Container("train-0", "main", {"GPU-1"})};
  watch_.Step();
  EXPECT_EQ(jobs_.Find("k8s:team-a/train-0/main")->spec.place, "");
  EXPECT_THAT(Running(), ElementsAre("k8s:team-a/train-0/main"));
}

TEST_F(PodWatchTest, AKubeletThatDoesNotAnswerEndsNoJobAndSaysWhy) {
  Run("train-0", kUid);
  answer_ = std::vector{Container("train-0", "main", {"GPU-1"})};
  watch_.Step();
  answer_ = Error{ErrorCode::kUnavailable, "no answer in time"};
  Ask();
  EXPECT_THAT(Running(), ElementsAre("k8s:team-a/train-0/main"));
  EXPECT_THAT(watch_.state().trouble, HasSubstr("no answer in time"));
  EXPECT_EQ(watch_.state().failures, 1U);
  answer_ = std::vector<ContainerResources>();
  Ask();
  EXPECT_EQ(watch_.state().trouble, "");
  EXPECT_THAT(Running(), IsEmpty());
}

TEST_F(PodWatchTest, TheNamespaceOfACallerIsThatOfItsPod) {
  Run("train-0", kUid);
  const std::string group = "/kubepods/burstable/pod" + kUid + "/x";
  EXPECT_EQ(watch_.NamespaceOf(group), "team-a");
  EXPECT_EQ(watch_.NamespaceOf("/kubepods/burstable/pod" + kOtherUid), "");
  EXPECT_EQ(watch_.NamespaceOf("/user.slice"), "");
  // A pod that started since is found at the next look.
  Log("later", kOtherUid);
  EXPECT_EQ(watch_.NamespaceOf("/kubepods/burstable/pod" + kOtherUid), "");
  clock_.Advance(1s);
  EXPECT_EQ(watch_.NamespaceOf("/kubepods/burstable/pod" + kOtherUid), "team-a");
}

TEST_F(PodWatchTest, GroupsOfAllDriversAndVersionsAreFound) {
  const auto found = [this](const std::string& root) { return RunningPods(folder_.path() / root); };
  EXPECT_EQ(found("nothing"), std::nullopt);
  Folder("v2/kubepods/besteffort/pod" + kUid);
  Folder("v2/kubepods/pod" + kOtherUid + "/container");
  EXPECT_THAT(found("v2"), Optional(UnorderedElementsAre(kUid, kOtherUid)));
  Folder("v1/systemd/kubepods/burstable/pod" + kUid);
  EXPECT_THAT(found("v1"), Optional(ElementsAre(kUid)));
  Folder("kind/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" +
         std::string("0123456789abcdef0123456789abcdef") + ".slice");
  EXPECT_THAT(found("kind"), Optional(ElementsAre("0123456789abcdef0123456789abcdef")));
  Folder("empty/kubepods.slice");
  EXPECT_THAT(found("empty"), Optional(IsEmpty()));
}

}  // namespace pod_watch_test
}  // namespace zeus::daemon
