#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/daemon/job_book.h"
#include "zeus/daemon/pods.h"
#include "zeus/kubernetes/pod_resources.h"

namespace zeus::daemon {

// Makes a job of every container of Kubernetes that has a device of this node, and ends it with the
// container: asks the kubelet every 10 s, and when the control group of a pod appears or goes.
//
// The kubelet names no uid and goes on listing pods that have ended. So a container begins when its
// pod has a control group too, as far as folders show that; without them, when it is listed. While
// the kubelet does not answer, jobs stay as they are: those whose processes are gone end by
// themselves.
//
// Thread-safe. The clock and the book must outlive it.
class PodWatch {
 public:
  struct Options {
    std::function<Result<std::vector<kubernetes::ContainerResources>>()> list{};
    // The UUID of the board that has a part, "MIG-…"; nullopt where nothing tells.
    std::function<std::optional<std::string>(const std::string& partition)> board_of{};
    // The UUID of a claimed device.
    std::function<std::optional<std::string>(const kubernetes::ClaimedDevice& device)> claimed{};
    std::function<void()> before_change{};  // Called before jobs begin or end.
    std::function<void()> begun{};          // Called after jobs began.
    std::filesystem::path logs = "/var/log/pods";
    std::filesystem::path cgroups = "/sys/fs/cgroup";
    Seconds period{10};
    Seconds look_period{1};  // Between two looks at the control groups.
  };
  // `devices`: the ids of the node's devices.
  PodWatch(const Clock& clock, JobBook& jobs, std::set<std::string> devices, Options options);

  // Asks the kubelet if it is time to. Returns when to come again.
  TimePoint Step();

  struct State {
    bool asked = false;
    std::string trouble{};            // Why the latest question has no answer; empty: it has one.
    std::size_t containers = 0;       // With a device of this node.
    std::size_t unknown_devices = 0;  // GPUs in the answer that are none of this node.
    std::uint64_t failures = 0;
  };
  State state() const;

  // The namespace of the pod that has the control group; empty for others, and where it is not
  // known.
  std::string NamespaceOf(std::string_view cgroup);

 private:
  struct Wanted;  // The jobs that there should be.

  bool MustAsk();
  void Apply(const std::vector<kubernetes::ContainerResources>& containers);
  // Takes the jobs that run already out of `wanted`; returns those that are to end.
  std::vector<std::string> TakeEnded(std::map<std::string, JobSpec>& wanted) const;
  void Note(const Wanted& wanted);
  Wanted Plan(const std::vector<kubernetes::ContainerResources>& containers);
  // The ids of its devices that this node has.
  std::vector<std::string> DevicesOf(const kubernetes::ContainerResources& container,
                                     std::size_t& unknown) const;
  std::optional<std::string> NodeDevice(const std::string& id) const;

  const Clock& clock_;
  JobBook& jobs_;
  const std::set<std::string> devices_;
  const Options options_;
  // These belong to the thread that calls Step().
  std::optional<std::set<std::string>> running_{};  // At the last look.
  std::optional<TimePoint> next_ask_{};

  mutable std::mutex mutex_;
  State state_{};                           // Guarded by mutex_, as are the next two.
  std::map<std::string, PodName> names_{};  // By uid.
  std::optional<TimePoint> names_read_{};
};

}  // namespace zeus::daemon
