#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

// The pods of Kubernetes on this machine, as far as folders tell: the kubelet gives each a folder
// of logs, "<namespace>_<pod>_<uid>", and a control group. Names are read, and nothing else.
namespace zeus::daemon {

// A pod by its name, which a later one may have again, and by the uid that only it has.
struct PodName {
  std::string name_space{};
  std::string pod{};

  friend auto operator<=>(const PodName&, const PodName&) = default;
};

struct LoggedPods {
  std::map<PodName, std::vector<std::string>>
      uids{};                              // Former pods of a name are kept for a while.
  std::map<std::string, PodName> names{};  // By uid.
};

// The pods that have a folder of logs; nullopt where `folder` cannot be read.
std::optional<LoggedPods> ReadLoggedPods(const std::filesystem::path& folder);

// The uids of the pods that have a control group, which is so while they run; nullopt where no
// group of Kubernetes is seen below `root`, the mounted control groups of both versions.
std::optional<std::set<std::string>> RunningPods(const std::filesystem::path& root);

}  // namespace zeus::daemon
