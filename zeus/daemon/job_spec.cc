#include "zeus/daemon/job_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "zeus/base/field_reader.h"
#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

constexpr std::size_t kMostDevices = 256;
constexpr std::size_t kMostPids = 1024;
constexpr std::size_t kMostLabels = 64;
constexpr std::size_t kLongestJobText = 256;
constexpr std::size_t kLongestCgroup = 4096;
constexpr std::size_t kMostIdParts = 3;
constexpr std::size_t kLongestId = 700;
constexpr std::size_t kLongestStep = 32;
constexpr double kHighestLimit = 1e5;

bool IsShortText(const std::string& text) {
  return text.size() <= kLongestJobText &&
         std::ranges::none_of(text, [](char c) { return c >= 0 && c < ' '; });
}

// The root would make every process of the machine a part of the job.
Status CheckJobCgroup(const std::string& path) {
  if (path.empty()) return Ok();
  if (path.front() != '/' || path.find_first_not_of('/') == std::string::npos ||
      path.size() > kLongestCgroup || (path + "/").find("/../") != std::string::npos)
    return FieldError("cgroup", "must be a path like /slurm_n1/uid_1001/job_1234");
  return Ok();
}

Status CheckLabels(const std::map<std::string, std::string>& labels) {
  if (labels.size() > kMostLabels)
    return FieldError("labels", fmt::format("must be {} at most", kMostLabels));
  for (const auto& [key, value] : labels)
    if (key.empty() || !IsShortText(key) || !IsShortText(value))
      return FieldError("labels",
                        fmt::format("must be texts of {} characters at most", kLongestJobText));
  return Ok();
}

Status CheckPid(const std::string& field, std::int64_t pid) {
  if (pid <= 0 || pid > std::numeric_limits<pid_t>::max())
    return FieldError(field, fmt::format("{} is no process", pid));
  return Ok();
}

Status CheckJobLists(const JobSpec& spec) {
  if (spec.devices.size() > kMostDevices)
    return FieldError("devices", fmt::format("must be {} at most", kMostDevices));
  if (spec.gpu_positions.size() > kMostDevices)
    return FieldError("gpu_positions", fmt::format("must be {} at most", kMostDevices));
  for (const std::string& device : spec.devices)
    if (device.empty() || !IsShortText(device))
      return FieldError("devices", "must be UUIDs or PCI addresses");
  if (spec.pids.size() > kMostPids)
    return FieldError("pids", fmt::format("must be {} at most", kMostPids));
  for (const std::int64_t pid : spec.pids) ZEUS_RETURN_IF_ERROR(CheckPid("pids", pid));
  return CheckLabels(spec.labels);
}

// "k8s:<namespace>/<pod>/<container>": the parts are as identifiers are, but may be longer.
Status CheckJobId(std::string_view id) {
  if (!id.starts_with(kContainerJob)) return CheckIdentifier("id", id);
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.:/").find(c) != std::string_view::npos;
  };
  const auto slashes = static_cast<std::size_t>(std::ranges::count(id, '/'));
  if (id.size() > kLongestId || !std::ranges::all_of(id, allowed) || slashes >= kMostIdParts ||
      id.front() == '/' || id.back() == '/' || id.find("//") != std::string_view::npos)
    return FieldError("id", "must be like k8s:namespace/pod/container: " + Quote(id));
  return Ok();
}

Status CheckJobSpec(const JobSpec& spec) {
  if (spec.id.empty()) return FieldError("id", "must not be empty");
  ZEUS_RETURN_IF_ERROR(CheckJobId(spec.id));
  ZEUS_RETURN_IF_ERROR(CheckIdentifier("place", spec.place));
  if (spec.uid == std::numeric_limits<uid_t>::max()) return FieldError("uid", "is no user");
  // The devices of a container are its own even where nothing tells its processes.
  const bool container = spec.id.starts_with(kContainerJob);
  if (!spec.uid && spec.cgroup.empty() && spec.pids.empty() && spec.place.empty() && !container)
    return FieldError("uid", "a job needs it, or a cgroup, a place or pids");
  ZEUS_RETURN_IF_ERROR(CheckJobCgroup(spec.cgroup));
  if (spec.power_limit &&
      !(*spec.power_limit > Watts() && spec.power_limit->value() <= kHighestLimit))
    return FieldError("power_limit_watts",
                      fmt::format("must be more than 0, {} at most", kHighestLimit));
  return CheckJobLists(spec);
}

}  // namespace

Result<JobSpec> ParseJobSpec(const Json& json) {
  JobSpec spec;
  FieldReader reader("a job", json);
  reader.Require("id", spec.id);
  reader.Read("uid", spec.uid);
  const bool by_position = json.is_object() && json.contains("gpu_positions");
  if (by_position) {
    reader.Require("gpu_positions", spec.gpu_positions);
    reader.ReadUnlessNull("devices", spec.devices);
  } else {
    reader.Require("devices", spec.devices);
  }
  std::optional<double> power_limit;
  reader.Read("power_limit_watts", power_limit);
  reader.ReadUnlessNull("cgroup", spec.cgroup);
  reader.ReadUnlessNull("place", spec.place);
  reader.ReadUnlessNull("pids", spec.pids);
  reader.ReadUnlessNull("labels", spec.labels);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  if (power_limit) spec.power_limit = Watts(*power_limit);
  ZEUS_RETURN_IF_ERROR(CheckJobSpec(spec));
  while (spec.cgroup.ends_with('/')) spec.cgroup.pop_back();
  return spec;
}

Json ToJson(const JobSpec& spec) {
  return {
      {"id", spec.id},
      {"uid", spec.uid ? Json(*spec.uid) : Json(nullptr)},
      {"devices", spec.devices},
      {"cgroup", spec.cgroup.empty() ? Json(nullptr) : Json(spec.cgroup)},
      {"place", spec.place.empty() ? Json(nullptr) : Json(spec.place)},
      {"pids", spec.pids},
      {"labels", spec.labels},
      {"power_limit_watts", spec.power_limit ? Json(spec.power_limit->value()) : Json(nullptr)}};
}

Result<StepSpec> ParseStepSpec(const Json& json) {
  StepSpec spec;
  FieldReader reader("a step", json);
  reader.Require("step", spec.step);
  reader.Require("pid", spec.pid);
  reader.ReadUnlessNull("labels", spec.labels);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  const bool plain = std::ranges::all_of(spec.step, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '+';
  });
  if (spec.step.empty() || spec.step.size() > kLongestStep || !plain)
    return FieldError("step", "must be a number, batch, extern or interactive");
  ZEUS_RETURN_IF_ERROR(CheckPid("pid", spec.pid));
  ZEUS_RETURN_IF_ERROR(CheckLabels(spec.labels));
  return spec;
}

}  // namespace zeus::daemon
