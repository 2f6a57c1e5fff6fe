#include "zeus/daemon/pods.h"

#include <functional>
#include <system_error>

#include "zeus/daemon/cgroup.h"

namespace zeus::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 65536;  // A folder that has more is not the kubelet's.

// Calls `use` with the names in a folder. Returns false where it cannot be read.
bool ForEachName(const fs::path& folder, const std::function<void(const std::string&)>& use) {
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  if (failure) return false;
  std::size_t entries = 0;
  for (const fs::directory_iterator end; !failure && entry != end; entry.increment(failure)) {
    if (++entries > kMostEntries) return false;
    use(entry->path().filename().string());
  }
  return true;
}

bool IsKubernetes(const std::string& name) {
  return name == "kubepods" || name == "kubepods.slice" || name.ends_with("-kubepods.slice");
}

bool IsClass(const std::string& name) {
  return name == "burstable" || name == "besteffort" || name.ends_with("-burstable.slice") ||
         name.ends_with("-besteffort.slice");
}

void AddPods(const fs::path& group, std::set<std::string>& uids) {
  ForEachName(group, [&](const std::string& name) {
    if (const std::string uid = PodUid(name); !uid.empty()) uids.insert(uid);
    if (IsClass(name))
      ForEachName(group / name, [&](const std::string& inner) {
        if (const std::string uid = PodUid(inner); !uid.empty()) uids.insert(uid);
      });
  });
}

// Pods are right below the root, or below the slice of the kubelet (kind).
bool AddPodsBelow(const fs::path& root, std::set<std::string>& uids) {
  bool seen = false;
  ForEachName(root, [&](const std::string& name) {
    if (IsKubernetes(name)) {
      seen = true;
      AddPods(root / name, uids);
    }
    if (name == "kubelet.slice" || name == "kubelet")
      seen = AddPodsBelow(root / name, uids) || seen;
  });
  return seen;
}

}  // namespace

std::optional<LoggedPods> ReadLoggedPods(const fs::path& folder) {
  LoggedPods pods;
  const bool read = ForEachName(folder, [&pods](const std::string& name) {
    // None of the three has an underscore.
    const std::size_t first = name.find('_');
    const std::size_t second = first == std::string::npos ? first : name.find('_', first + 1);
    if (second == std::string::npos) return;
    const std::string uid = name.substr(second + 1);
    PodName pod{.name_space = name.substr(0, first),
                .pod = name.substr(first + 1, second - first - 1)};
    if (pod.name_space.empty() || pod.pod.empty() || !IsPodUid(uid)) return;
    pods.uids[pod].push_back(uid);
    pods.names[uid] = std::move(pod);
  });
  if (!read) return std::nullopt;
  return pods;
}

std::optional<std::set<std::string>> RunningPods(const fs::path& root) {
  std::set<std::string> uids;
  bool seen = AddPodsBelow(root, uids);
  // Version 1 has a tree for each controller.
  for (const char* controller : {"systemd", "cpu", "memory"})
    if (!seen) seen = AddPodsBelow(root / controller, uids);
  if (!seen) return std::nullopt;
  return uids;
}

}  // namespace zeus::daemon
