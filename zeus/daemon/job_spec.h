#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::daemon {

// The ids of containers of Kubernetes begin with this: "k8s:<namespace>/<pod>/<container>".
inline constexpr std::string_view kContainerJob = "k8s:";

// A job as its scheduler registers it: the body of POST /v1/jobs.
struct JobSpec {
  std::string id{};            // "slurm:1234", "k8s:team-a/train-0/main"
  std::optional<uid_t> uid{};  // The owner of its processes; nullopt: anybody in the cgroup.
  std::vector<std::string> devices{};  // As KnobKey names them.
  std::string cgroup{};                // Those in it and below belong to the job.
  // So do those whose cgroup says this, as JobIdentity has it: "pod:7b1c…". Empty: the id.
  std::string place{};
  std::vector<std::int64_t> pids{};  // So do these.
  std::map<std::string, std::string> labels{};
  // Positions of GPUs in the scheduler's list, which the daemon turns into devices.
  std::vector<std::int64_t> gpu_positions{};
  std::optional<Watts> power_limit{};  // At most this on each of its GPUs, until it ends.

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// kInvalidArgument begins with the name of the field. Unknown fields are refused.
Result<JobSpec> ParseJobSpec(const Json& json);
Json ToJson(const JobSpec& spec);

// The body of POST /v1/jobs/{id}/steps: a process, with those that it starts, runs a step.
struct StepSpec {
  std::string step{};  // "0", "batch"
  std::int64_t pid = 0;
  std::map<std::string, std::string> labels{};  // Added to those of the job.
};
Result<StepSpec> ParseStepSpec(const Json& json);

}  // namespace zeus::daemon
