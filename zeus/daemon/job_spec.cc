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

Status CheckJobLists(const JobSpec& spec) {
  if (spec.devices.size() > kMostDevices)
    return FieldError("devices", fmt::format("must be {} at most", kMostDevices));
  for (const std::string& device : spec.devices)
    if (device.empty() || !IsShortText(device))
      return FieldError("devices", "must be UUIDs or PCI addresses");
  if (spec.pids.size() > kMostPids)
    return FieldError("pids", fmt::format("must be {} at most", kMostPids));
  for (const std::int64_t pid : spec.pids)
    if (pid <= 0 || pid > std::numeric_limits<pid_t>::max())
      return FieldError("pids", fmt::format("{} is no process", pid));
  if (spec.labels.size() > kMostLabels)
    return FieldError("labels", fmt::format("must be {} at most", kMostLabels));
  for (const auto& [key, value] : spec.labels)
    if (key.empty() || !IsShortText(key) || !IsShortText(value))
      return FieldError("labels",
                        fmt::format("must be texts of {} characters at most", kLongestJobText));
  return Ok();
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
  return CheckJobLists(spec);
}

}  // namespace

Result<JobSpec> ParseJobSpec(const Json& json) {
  JobSpec spec;
  FieldReader reader("a job", json);
  reader.Require("id", spec.id);
  reader.Read("uid", spec.uid);
  reader.Require("devices", spec.devices);
  reader.ReadUnlessNull("cgroup", spec.cgroup);
  reader.ReadUnlessNull("place", spec.place);
  reader.ReadUnlessNull("pids", spec.pids);
  reader.ReadUnlessNull("labels", spec.labels);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  ZEUS_RETURN_IF_ERROR(CheckJobSpec(spec));
  while (spec.cgroup.ends_with('/')) spec.cgroup.pop_back();
  return spec;
}

Json ToJson(const JobSpec& spec) {
  return {{"id", spec.id},
          {"uid", spec.uid ? Json(*spec.uid) : Json(nullptr)},
          {"devices", spec.devices},
          {"cgroup", spec.cgroup.empty() ? Json(nullptr) : Json(spec.cgroup)},
          {"place", spec.place.empty() ? Json(nullptr) : Json(spec.place)},
          {"pids", spec.pids},
          {"labels", spec.labels}};
}

}  // namespace zeus::daemon
