#include "zeus/daemon/cgroup.h"

#include <gtest/gtest.h>

namespace zeus::daemon {
namespace cgroup_test {

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kUid = "7b1c2d3e-0011-2233-4455-66778899aabb";
const std::string kUidInSlice = "7b1c2d3e_0011_2233_4455_66778899aabb";

struct Case {
  std::string path;
  JobIdentity expected;
};

TEST(CgroupTest, SlurmJobsOfBothVersions) {
  const std::vector<Case> cases = {
      {"/slurm/uid_1001/job_1234/step_0/task_0", {JobKind::kSlurm, "slurm:1234", "0", 1001}},
      {"/slurm_n1/uid_1001/job_1234/step_batch", {JobKind::kSlurm, "slurm:1234", "batch", 1001}},
      {"/slurm/uid_0/job_7", {JobKind::kSlurm, "slurm:7", "", 0}},
      {"/system.slice/slurmstepd.scope/job_12/step_extern/user/task_0",
       {JobKind::kSlurm, "slurm:12", "extern"}},
      {"/system.slice/node1_slurmstepd.scope/job_12/step_3/user/task_special",
       {JobKind::kSlurm, "slurm:12", "3"}},
      {"/system.slice/slurmstepd.scope/job_12/step_0/user/task_0/libpod-" + kId + ".scope",
       {JobKind::kSlurm, "slurm:12", "0", std::nullopt, kId}},
  };
  for (const Case& one : cases) EXPECT_EQ(JobOfCgroup(one.path), one.expected) << one.path;
}

TEST(CgroupTest, PodsOfBothDriversAndAllRuntimes) {
  const JobIdentity pod{JobKind::kPod, "pod:" + kUid, "", std::nullopt, kId};
  const std::string slice = "-pod" + kUidInSlice + ".slice";
  for (const std::string& path :
       {"/kubepods/burstable/pod" + kUid + "/" + kId, "/kubepods/pod" + kUid + "/" + kId,
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable" + slice + "/cri-containerd-" +
            kId + ".scope",
        "/kubepods.slice/kubepods" + slice + "/crio-" + kId + ".scope",
        "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort" + slice + "/docker-" + kId +
            ".scope",
        "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
        "kubelet-kubepods-besteffort" +
            slice + "/cri-containerd-" + kId + ".scope",
        "/system.slice/containerd.service/kubepods-burstable" + slice + ":cri-containerd:" + kId,
        "/../../kubepods/besteffort/pod" + kUid + "/" + kId + "/made-inside"})
    EXPECT_EQ(JobOfCgroup(path), pod) << path;
}

TEST(CgroupTest, PodsAsADaemonInAPodSeesThem) {
  const JobIdentity pod{JobKind::kPod, "pod:" + kUid, "", std::nullopt, kId};
  const std::string slice = "-pod" + kUidInSlice + ".slice/cri-containerd-" + kId + ".scope";
  for (const std::string& path :
       {// Pods of the reader's own class, of another one, and of the class "guaranteed".
        "/../../kubepods-burstable" + slice,
        "/../../../kubepods-besteffort.slice/kubepods-besteffort" + slice,
        "/../../../kubepods" + slice, "/../../kubelet-kubepods-burstable" + slice + "/made-inside",
        "/../../pod" + kUid + "/" + kId, "/../../../besteffort/pod" + kUid + "/" + kId})
    EXPECT_EQ(JobOfCgroup(path), pod) << path;
}

TEST(CgroupTest, ContainersBesideThatOfTheDaemonCannotPassForPods) {
  const std::string forged = "/kubepods/pod" + kUid + "/" + kId;
  EXPECT_EQ(JobOfCgroup("/../" + kId + forged), std::nullopt);
  EXPECT_EQ(JobOfCgroup("/../cri-containerd-" + kId + ".scope"), std::nullopt);
  EXPECT_EQ(JobOfCgroup("/burstable/pod" + kUid + "/" + kId), std::nullopt);
  EXPECT_EQ(JobOfCgroup("/made/../burstable/pod" + kUid + "/" + kId), std::nullopt);
}

TEST(CgroupTest, APodWithoutAContainerAndAStaticPod) {
  EXPECT_EQ(JobOfCgroup("/kubepods/burstable/pod" + kUid),
            (JobIdentity{JobKind::kPod, "pod:" + kUid}));
  EXPECT_EQ(JobOfCgroup("/kubepods/pod0123456789abcdef0123456789abcdef")->job,
            "pod:0123456789abcdef0123456789abcdef");
  EXPECT_EQ(JobOfCgroup("/kubepods/burstable"), std::nullopt);
}

TEST(CgroupTest, ContainersOutsideOfPods) {
  const std::vector<Case> cases = {
      {"/docker/" + kId, {JobKind::kContainer, "docker:" + kId, "", std::nullopt, kId}},
      {"/system.slice/docker-" + kId + ".scope",
       {JobKind::kContainer, "docker:" + kId, "", std::nullopt, kId}},
      {"/machine.slice/libpod-" + kId + ".scope/container",
       {JobKind::kContainer, "podman:" + kId, "", std::nullopt, kId}},
      {"/libpod_parent/libpod-" + kId,
       {JobKind::kContainer, "podman:" + kId, "", std::nullopt, kId}},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId +
           ".scope/container",
       {JobKind::kContainer, "podman:" + kId, "", 1000, kId}},
  };
  for (const Case& one : cases) EXPECT_EQ(JobOfCgroup(one.path), one.expected) << one.path;
}

TEST(CgroupTest, UnitsOfTheSystemAndOfUsers) {
  EXPECT_EQ(JobOfCgroup("/system.slice/nginx.service"),
            (JobIdentity{JobKind::kUnit, "unit:nginx.service"}));
  EXPECT_EQ(JobOfCgroup("/system.slice/system-getty.slice/getty@tty1.service")->job,
            "unit:getty@tty1.service");
  EXPECT_EQ(JobOfCgroup("/user.slice/user-1000.slice/session-3.scope"),
            (JobIdentity{JobKind::kUnit, "unit:session-3.scope", "", 1000}));
  EXPECT_EQ(JobOfCgroup("/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope"),
            (JobIdentity{JobKind::kUnit, "unit:user@1000.service/a.scope", "", 1000}));
  EXPECT_EQ(JobOfCgroup("/system.slice/containerd.service")->job, "unit:containerd.service");
  EXPECT_EQ(JobOfCgroup("/system.slice/libpod-conmon-" + kId + ".scope")->kind, JobKind::kUnit);
}

TEST(CgroupTest, NobodyMakesHimselfAMemberOfAJobByNamingAGroup) {
  const std::string user = "/user.slice/user-1000.slice/user@1000.service";
  for (const std::string& forged :
       {user + "/slurm/uid_0/job_1/step_0", user + "/app.slice/slurmstepd.scope/job_1/step_0",
        user + "/kubepods/burstable/pod" + kUid + "/" + kId,
        std::string("/system.slice/delegated.service/slurm/uid_0/job_1"),
        "/system.slice/delegated.service/docker-" + kId + ".scope",
        std::string("/user.slice/user-1000.slice/session-3.scope/slurmstepd.scope/job_1")}) {
    EXPECT_EQ(JobOfCgroup(forged)->kind, JobKind::kUnit) << forged;
    EXPECT_TRUE(JobOfCgroup(forged)->job.starts_with("unit:")) << forged;
  }
  EXPECT_EQ(JobOfCgroup("/docker/" + kId + "/kubepods/pod" + kUid)->job, "docker:" + kId);
  EXPECT_EQ(JobOfCgroup("/docker/" + kId + "/slurm/uid_0/job_1")->job, "docker:" + kId);
  EXPECT_EQ(JobOfCgroup("/kubepods/pod" + kUid + "/made-inside/" + kId)->container, "");
  EXPECT_EQ(JobOfCgroup("/slurm/uid_5/job_1/step_0/task_0/uid_0/job_2/step_9"),
            (JobIdentity{JobKind::kSlurm, "slurm:1", "0", 5}));
}

TEST(CgroupTest, NoiseBelongsToNothing) {
  for (const std::string& path :
       {std::string(), std::string("/"), std::string("relative/job_1"), std::string("/job_1"),
        std::string("/slurm/uid_1/job_"), std::string("/slurm/uid_1/job_x1"),
        std::string("/slurm/uid_1/job_99999999999999999999"), std::string("/kubepods/podx"),
        std::string("/docker/short"), std::string("/system.slice"), "/" + std::string(5000, 'a'),
        std::string("/system.slice/\x1b[31m.scope"), std::string("/user.slice/user-x.slice")})
    EXPECT_EQ(JobOfCgroup(path), std::nullopt) << path;
  EXPECT_EQ(JobOfCgroup("/slurm/uid_4294967295/job_1")->uid, std::nullopt);
}

TEST(CgroupTest, TheMostTellingLineOfAProcessIsChosen) {
  EXPECT_EQ(CgroupOfProcess("0::/system.slice/a.service\n"), "/system.slice/a.service");
  EXPECT_EQ(CgroupOfProcess("12:memory:/slurm/uid_1/job_2/step_0\n"
                            "1:name=systemd:/system.slice/slurmd.service\n"
                            "0::/system.slice/slurmd.service\n"),
            "/slurm/uid_1/job_2/step_0");
  EXPECT_EQ(CgroupOfProcess("4:pids:/user.slice\n1:name=systemd:/user.slice/x.scope\n0::/\n"),
            "/user.slice/x.scope");
  EXPECT_EQ(CgroupOfProcess("0::/system.slice/a.service (deleted)\n"), "/system.slice/a.service");
  const std::string colons =
      "/system.slice/containerd.service/kubepods-pod" + kUidInSlice + ".slice:cri-containerd:";
  EXPECT_EQ(CgroupOfProcess("0::" + colons + kId), colons + kId);
  EXPECT_EQ(CgroupOfProcess("0::/\n"), "/");
  for (const char* noise : {"", "\n\n", "0", "0:", "0::relative", ":::"})
    EXPECT_EQ(CgroupOfProcess(noise), "") << noise;
}

TEST(CgroupTest, BelowMeansWholeNames) {
  EXPECT_TRUE(IsInCgroup("/slurm/job_1", "/slurm/job_1"));
  EXPECT_TRUE(IsInCgroup("/slurm/job_1/step_0", "/slurm/job_1/"));
  EXPECT_FALSE(IsInCgroup("/slurm/job_12", "/slurm/job_1"));
  EXPECT_FALSE(IsInCgroup("/slurm", "/slurm/job_1"));
  EXPECT_FALSE(IsInCgroup("/slurm", "/"));
  EXPECT_FALSE(IsInCgroup("/slurm", ""));
}

}  // namespace cgroup_test
}  // namespace zeus::daemon
