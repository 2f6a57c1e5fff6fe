#include "zeus/daemon/cgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

constexpr std::size_t kLongestPath = 4096;
constexpr std::size_t kLongestUnit = 256;  // As systemd has it.
constexpr std::size_t kIdDigits = 64;      // Ids of containers.

// The names by which runtimes call the scope of a container: prefix, id, ".scope".
struct ContainerRuntime {
  std::string_view prefix;
  std::string_view name;  // Names its jobs outside of pods; empty: only pods have it.
};
constexpr std::array kRuntimes = {
    ContainerRuntime{"docker-", "docker"}, ContainerRuntime{"libpod-", "podman"},
    ContainerRuntime{"nerdctl-", "nerdctl"}, ContainerRuntime{"cri-containerd-", ""},
    ContainerRuntime{"crio-", ""}};

// The groups in which runtimes without systemd put containers, by the id alone or as a scope.
struct ContainerParent {
  std::string_view name;
  std::string_view runtime;
};
constexpr std::array kParents = {ContainerParent{"docker", "docker"},
                                 ContainerParent{"libpod_parent", "podman"}};

// Services below which runtimes, and nobody else, make groups.
constexpr std::array<std::string_view, 5> kRuntimeServices = {
    "containerd.service", "crio.service", "docker.service", "k3s.service", "kubelet.service"};

bool IsHexadecimal(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The text between the two, or nothing.
std::string_view Between(std::string_view text, std::string_view start, std::string_view end) {
  if (text.size() < start.size() + end.size() || !text.starts_with(start) || !text.ends_with(end))
    return {};
  return text.substr(start.size(), text.size() - start.size() - end.size());
}

bool IsContainerId(std::string_view text) {
  return text.size() == kIdDigits && std::ranges::all_of(text, IsHexadecimal);
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 19 && std::ranges::all_of(text, IsDigit);
}

std::optional<uid_t> ParseUid(std::string_view text) {
  const auto number = ParseUnsigned(text);
  // The highest is what the kernel calls no user.
  if (!IsNumber(text) || !number.ok() || number.value() >= std::numeric_limits<uid_t>::max())
    return std::nullopt;
  return static_cast<uid_t>(number.value());
}

bool IsUnit(std::string_view name) {
  constexpr std::string_view kOthers = ":-_.\\@";
  return name.size() <= kLongestUnit && (name.ends_with(".service") || name.ends_with(".scope")) &&
         std::ranges::all_of(name, [&](char c) {
           return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  kOthers.find(c) != std::string_view::npos;
         });
}

// The id in "docker-ID.scope" and its relatives, and whose it is.
std::optional<std::pair<std::string_view, ContainerRuntime>> ScopeOfContainer(
    std::string_view name) {
  for (const ContainerRuntime& runtime : kRuntimes) {
    const std::string_view id = Between(name, runtime.prefix, ".scope");
    if (IsContainerId(id)) return std::pair(id, runtime);
  }
  return std::nullopt;
}

// Reads a path component by component; each function handles those inside one kind of thing.
class CgroupWalk {
 public:
  std::optional<JobIdentity> Over(std::string_view path) {
    std::size_t depth = 0;
    while (!path.empty() && place_ != Place::kEnd) {
      const std::size_t slash = std::min(path.find('/'), path.size());
      const std::string_view name = path.substr(0, slash);
      path.remove_prefix(std::min(slash + 1, path.size()));
      // A group namespace shows the groups outside of it by "..".
      if (name == "..") beside_ = beside_ || depth == 0;
      if (!name.empty() && name != "." && name != "..") Visit(name, depth++);
    }
    if (found_ && !found_->uid) found_->uid = uid_;
    return found_;
  }

 private:
  enum class Place { kOutside, kSlurm, kSlurmJob, kKubernetes, kPod, kParent, kUser, kEnd };

  void Visit(std::string_view name, std::size_t depth) {
    switch (place_) {
      case Place::kOutside:
        return VisitOutside(name, depth);
      case Place::kSlurm:
        return VisitSlurm(name);
      case Place::kSlurmJob:
        return VisitSlurmJob(name);
      case Place::kKubernetes:
        return VisitKubernetes(name);
      case Place::kPod:
        return VisitPod(name);
      case Place::kParent:
        return VisitParent(name);
      case Place::kUser:
        return VisitUser(name);
      case Place::kEnd:
        return;
    }
  }

  // The first name after ".." is a neighbour of the reader's own group or of one above it: a reader
  // in a pod sees neither "kubepods" nor, for pods of its own class, the group of the class.
  // Returns whether that explains the name.
  bool VisitBeside(std::string_view name) {
    if (name == "burstable" || name == "besteffort" || name.ends_with("kubepods-burstable.slice") ||
        name.ends_with("kubepods-besteffort.slice")) {
      place_ = Place::kKubernetes;
    } else if (!PodUid(name).empty()) {
      VisitKubernetes(name);
    } else if (const auto scope = ScopeOfContainer(name);
               IsContainerId(name) || (scope && scope->second.name.empty())) {
      // A container that shares the reader's parent. What is below is that container's own.
      place_ = Place::kEnd;
    }
    return place_ != Place::kOutside;
  }

  void VisitOutside(std::string_view name, std::size_t depth) {
    if (depth == 0 && beside_ && VisitBeside(name)) return;
    if (const auto uid = ParseUid(Between(name, "user-", ".slice"))) uid_ = uid;
    if (name == "slurmstepd.scope" || name.ends_with("_slurmstepd.scope") ||
        (depth == 0 && name.starts_with("slurm") && !IsUnit(name) && !name.ends_with(".slice"))) {
      place_ = Place::kSlurm;
    } else if (name == "kubepods" || name == "kubepods.slice" ||
               name.ends_with("-kubepods.slice")) {
      place_ = Place::kKubernetes;
    } else if (const auto scope = ScopeOfContainer(name); scope && !scope->second.name.empty()) {
      FindContainer(scope->second.name, scope->first);
    } else if (const auto user = ParseUid(Between(name, "user@", ".service"))) {
      uid_ = user;
      manager_ = name;
      FindUnit(name);
      place_ = Place::kUser;
    } else if (IsUnit(name)) {
      FindUnit(name);
      if (std::ranges::find(kRuntimeServices, name) == kRuntimeServices.end()) place_ = Place::kEnd;
    } else if (found_) {
      VisitRuntimeService(name);
    } else if (depth == 0) {
      const auto parent = std::ranges::find(kParents, name, &ContainerParent::name);
      if (parent == kParents.end()) return;
      runtime_ = parent->runtime;
      place_ = Place::kParent;
    }
  }

  // containerd without the driver for systemd: "kubepods-podUID.slice:cri-containerd:ID".
  void VisitRuntimeService(std::string_view name) {
    const std::size_t first = name.find(':');
    const std::size_t last = name.rfind(':');
    if (first == last) return;
    const std::string uid = PodUid(name.substr(0, first));
    const std::string_view id = name.substr(last + 1);
    if (uid.empty() || !IsContainerId(id)) return;
    found_ = {.kind = JobKind::kPod, .job = "pod:" + uid, .container = std::string(id)};
    place_ = Place::kEnd;
  }

  void VisitSlurm(std::string_view name) {
    if (const auto uid = ParseUid(Between(name, "uid_", ""))) uid_ = uid;
    const std::string_view job = Between(name, "job_", "");
    if (!IsNumber(job)) return;
    found_ = {.kind = JobKind::kSlurm, .job = fmt::format("slurm:{}", job)};
    place_ = Place::kSlurmJob;
  }

  void VisitSlurmJob(std::string_view name) {
    const std::string_view step = Between(name, "step_", "");
    const bool known = step.size() <= 32 && std::ranges::all_of(step, [](char c) {
                         return IsDigit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '+';
                       });
    if (found_->step.empty() && known) found_->step = step;
    if (const auto scope = ScopeOfContainer(name)) {
      found_->container = scope->first;
      place_ = Place::kEnd;
    }
  }

  void VisitKubernetes(std::string_view name) {
    const std::string uid = PodUid(name);
    if (uid.empty()) return;
    found_ = {.kind = JobKind::kPod, .job = "pod:" + uid};
    place_ = Place::kPod;
  }

  // Only the group right below that of the pod is the runtime's.
  void VisitPod(std::string_view name) {
    if (const auto scope = ScopeOfContainer(name)) found_->container = scope->first;
    if (IsContainerId(name)) found_->container = name;
    place_ = Place::kEnd;
  }

  void VisitParent(std::string_view name) {
    place_ = Place::kEnd;
    std::string_view id = name;
    for (const ContainerRuntime& runtime : kRuntimes)
      if (runtime.name == runtime_ && name.starts_with(runtime.prefix))
        id = name.substr(runtime.prefix.size());
    if (id.ends_with(".scope")) id.remove_suffix(std::string_view(".scope").size());
    if (IsContainerId(id)) FindContainer(runtime_, id);
  }

  // Groups below a user's manager are the user's: they are named as his, and only ever as units or
  // containers.
  void VisitUser(std::string_view name) {
    if (const auto scope = ScopeOfContainer(name); scope && !scope->second.name.empty()) {
      FindContainer(scope->second.name, scope->first);
    } else if (IsUnit(name)) {
      FindUnit(fmt::format("{}/{}", manager_, name));
    }
  }

  void FindUnit(std::string_view name) {
    found_ = {.kind = JobKind::kUnit, .job = fmt::format("unit:{}", name)};
  }
  void FindContainer(std::string_view runtime, std::string_view id) {
    found_ = {.kind = JobKind::kContainer,
              .job = fmt::format("{}:{}", runtime, id),
              .container = std::string(id)};
    place_ = Place::kEnd;
  }

  Place place_ = Place::kOutside;
  bool beside_ = false;  // The path begins with "..".
  std::optional<JobIdentity> found_{};
  std::optional<uid_t> uid_{};
  std::string_view manager_{};
  std::string_view runtime_{};  // The runtime whose containers are in this group.
};

// The path of a line "hierarchy:controllers:path", which may have colons itself.
std::string_view PathOfLine(std::string_view line) {
  const std::size_t first = line.find(':');
  if (first == std::string_view::npos) return {};
  const std::size_t second = line.find(':', first + 1);
  if (second == std::string_view::npos) return {};
  std::string_view path = line.substr(second + 1);
  constexpr std::string_view kGone = " (deleted)";
  if (path.ends_with(kGone)) path.remove_suffix(kGone.size());
  return path.starts_with('/') && path.size() <= kLongestPath ? path : std::string_view();
}

// How much a line tells.
int LineWeight(std::string_view line) {
  const std::string_view path = PathOfLine(line);
  if (path.empty()) return 0;
  const auto job = JobOfCgroup(path);
  if (job && job->kind != JobKind::kUnit) return 5;
  if (path == "/") return 1;
  if (line.starts_with("0::")) return 4;
  return line.find(":name=systemd:") != std::string_view::npos ? 3 : 2;
}

}  // namespace

bool IsPodUid(std::string_view text) {
  return (text.size() == 36 || text.size() == 32) &&
         std::ranges::all_of(text, [](char c) { return IsHexadecimal(c) || c == '-'; });
}

std::string PodUid(std::string_view name) {
  std::string_view uid = Between(name, "pod", "");
  if (name.ends_with(".slice")) {
    const std::size_t pod = name.rfind("-pod");
    uid = pod == std::string_view::npos ? "" : Between(name.substr(pod), "-pod", ".slice");
  }
  std::string text(uid);
  std::ranges::replace(text, '_', '-');
  return IsPodUid(text) ? text : std::string();
}

std::optional<JobIdentity> JobOfCgroup(std::string_view path) {
  if (path.size() > kLongestPath || !path.starts_with('/')) return std::nullopt;
  return CgroupWalk().Over(path);
}

std::string CgroupOfProcess(std::string_view text) {
  std::string_view best;
  int weight = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const int own = LineWeight(line);
    if (own > weight) best = PathOfLine(line);
    weight = std::max(weight, own);
  }
  return std::string(best);
}

bool IsInCgroup(std::string_view path, std::string_view ancestor) {
  while (ancestor.ends_with('/')) ancestor.remove_suffix(1);
  if (ancestor.empty() || !path.starts_with(ancestor)) return false;
  return path.size() == ancestor.size() || path[ancestor.size()] == '/';
}

}  // namespace zeus::daemon
