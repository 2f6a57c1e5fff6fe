#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

// Which job, pod, container or unit a control group belongs to, by the names that schedulers and
// runtimes give to groups.
//
// A path is read from the outside in, and the outermost thing that is known decides: whatever is
// below a container, a service or a user's manager may have been made by those who run in it, under
// any name they like. So nobody becomes a member of a job by making a group of the same name.
namespace zeus::daemon {

enum class JobKind {
  kSlurm,
  kPod,        // Kubernetes.
  kContainer,  // Docker, Podman, nerdctl.
  kUnit,       // A service or scope of systemd.
};

struct JobIdentity {
  JobKind kind = JobKind::kUnit;
  // "slurm:1234", "pod:7b1c…" (with hyphens, as the API server writes uids), "docker:64 hex
  // digits", "podman:…", "unit:nginx.service", "unit:user@1000.service/app.scope" for units of a
  // user.
  std::string job{};
  std::string step{};          // Slurm: "0", "batch", "extern", "interactive".
  std::optional<uid_t> uid{};  // As far as the path tells.
  std::string container{};     // 64 hexadecimal digits.

  friend bool operator==(const JobIdentity&, const JobIdentity&) = default;
};

// "/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0". nullopt where the path belongs to
// nothing known.
std::optional<JobIdentity> JobOfCgroup(std::string_view path);

// The uid in the name of a pod's group, "pod7b1c…" or "kubepods-burstable-pod7b1c_….slice", with
// hyphens; empty where the name is none of a pod.
std::string PodUid(std::string_view name);
// Whether the text is a uid as the API server gives it to pods, or the hash that a static pod has.
bool IsPodUid(std::string_view text);

// The most telling path in the text of /proc/PID/cgroup: one that belongs to a job, where
// controllers disagree (cgroups v1), else that of cgroups v2. Empty where the text has none.
std::string CgroupOfProcess(std::string_view text);

// Whether `path` is the group `ancestor` or below it. Nothing is below the root or an empty path.
bool IsInCgroup(std::string_view path, std::string_view ancestor);

}  // namespace zeus::daemon
