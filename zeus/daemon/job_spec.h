#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus::daemon {

// A job as its scheduler registers it: the body of POST /v1/jobs.
struct JobSpec {
  std::string id{};            // "slurm:1234"
  std::optional<uid_t> uid{};  // The owner of its processes; nullopt: anybody in the cgroup.
  std::vector<std::string> devices{};  // As KnobKey names them.
  std::string cgroup{};                // Those in it and below belong to the job.
  std::vector<std::int64_t> pids{};    // So do these.
  std::map<std::string, std::string> labels{};

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// kInvalidArgument begins with the name of the field. Unknown fields are refused.
Result<JobSpec> ParseJobSpec(const Json& json);
Json ToJson(const JobSpec& spec);

}  // namespace zeus::daemon
