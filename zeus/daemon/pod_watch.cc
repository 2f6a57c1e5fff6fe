#include "zeus/daemon/pod_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/daemon/cgroup.h"

namespace zeus::daemon {
namespace {

constexpr std::string_view kPodPlace = "pod:";

std::string JobOf(const kubernetes::ContainerResources& container) {
  return fmt::format("{}{}/{}/{}", kContainerJob, container.name_space, container.pod,
                     container.container);
}

// Network cards and the like have no energy that is measured.
bool IsGpu(std::string_view resource) {
  return resource.find("gpu") != std::string_view::npos ||
         resource.find("/mig-") != std::string_view::npos;
}

// The uid of the pod that runs under this name now; nullopt where that cannot be told.
std::optional<std::string> UidOf(const LoggedPods& logged, const PodName& name,
                                 const std::optional<std::set<std::string>>& running) {
  const auto found = logged.uids.find(name);
  if (found == logged.uids.end()) return std::nullopt;
  if (!running) {
    if (found->second.size() == 1) return found->second.front();
    return std::nullopt;
  }
  const auto uid =
      std::ranges::find_if(found->second, [&](const auto& one) { return running->contains(one); });
  if (uid == found->second.end()) return std::nullopt;
  return *uid;
}

}  // namespace

struct PodWatch::Wanted {
  std::map<std::string, JobSpec> jobs{};
  std::size_t containers = 0;
  std::size_t unknown_devices = 0;
};

PodWatch::PodWatch(const Clock& clock, JobBook& jobs, std::set<std::string> devices,
                   Options options)
    : clock_(clock), jobs_(jobs), devices_(std::move(devices)), options_(std::move(options)) {}

PodWatch::State PodWatch::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool PodWatch::MustAsk() {
  auto running = RunningPods(options_.cgroups);
  const bool changed = running != running_;
  running_ = std::move(running);
  return changed || !next_ask_ || clock_.Now() >= *next_ask_;
}

TimePoint PodWatch::Step() {
  if (!MustAsk()) return std::min(*next_ask_, clock_.Now() + options_.look_period);
  const auto containers = options_.list();
  next_ask_ = clock_.Now() + options_.period;
  if (containers.ok()) Apply(containers.value());
  bool told = false;
  {
    const std::lock_guard lock(mutex_);
    const std::string trouble = containers.ok() ? "" : containers.error().message;
    told = state_.asked && state_.trouble.empty() == trouble.empty();
    state_.asked = true;
    state_.trouble = trouble;
    if (!containers.ok()) ++state_.failures;
  }
  if (!told && !containers.ok())
    log::Warning("energy by pod is not known: {}", containers.error().message);
  // Without groups to look at there is nothing to do before the next question.
  if (!running_) return *next_ask_;
  return std::min(*next_ask_, clock_.Now() + options_.look_period);
}

std::optional<std::string> PodWatch::NodeDevice(const std::string& id) const {
  const kubernetes::DeviceId parsed = kubernetes::ParseDeviceId(id);
  std::string board = parsed.board;
  if (board.empty() && options_.board_of)
    board = options_.board_of(parsed.partition).value_or(std::string());
  for (const std::string& name : {board, LowerCase(board)})
    if (devices_.contains(name)) return name;
  return std::nullopt;
}

std::vector<std::string> PodWatch::DevicesOf(const kubernetes::ContainerResources& container,
                                             std::size_t& unknown) const {
  std::set<std::string> found;  // Two replicas of a board are one device.
  const auto add = [&](const std::optional<std::string>& device, bool expected) {
    if (device)
      found.insert(*device);
    else if (expected)
      ++unknown;
  };
  for (const kubernetes::PluginDevices& devices : container.plugin_devices)
    for (const std::string& id : devices.ids) add(NodeDevice(id), IsGpu(devices.resource));
  for (const kubernetes::ClaimedDevice& device : container.claimed) {
    const auto id = options_.claimed ? options_.claimed(device) : std::nullopt;
    add(id ? NodeDevice(*id) : std::nullopt, IsGpu(device.driver));
  }
  return {found.begin(), found.end()};
}

PodWatch::Wanted PodWatch::Plan(const std::vector<kubernetes::ContainerResources>& containers) {
  Wanted wanted;
  const auto logged = ReadLoggedPods(options_.logs);
  for (const kubernetes::ContainerResources& container : containers) {
    std::vector<std::string> devices = DevicesOf(container, wanted.unknown_devices);
    if (devices.empty()) continue;
    const PodName name{.name_space = container.name_space, .pod = container.pod};
    const auto uid = logged ? UidOf(*logged, name, running_) : std::nullopt;
    // Its folder is made before its processes, and its group goes with them.
    const bool gone = logged && !uid && (running_ || !logged->uids.contains(name));
    if (gone) continue;
    ++wanted.containers;
    const std::string id = JobOf(container);
    wanted.jobs[id] = {.id = id,
                       .devices = std::move(devices),
                       .place = uid ? fmt::format("{}{}", kPodPlace, *uid) : "",
                       .labels = {{"namespace", container.name_space},
                                  {"pod", container.pod},
                                  {"container", container.container}}};
  }
  if (logged) {
    const std::lock_guard lock(mutex_);
    names_ = logged->names;
    names_read_ = clock_.Now();
  }
  return wanted;
}

std::vector<std::string> PodWatch::TakeEnded(std::map<std::string, JobSpec>& wanted) const {
  std::vector<std::string> over;
  for (const JobBook::View& job : jobs_.List()) {
    if (!job.spec.id.starts_with(kContainerJob)) continue;
    const auto found = wanted.find(job.spec.id);
    const bool same = found != wanted.end() && found->second == job.spec;
    // Its processes have gone. Without groups to look at, nothing tells that it came back.
    const bool gone = job.ended && same && !running_ && !job.spec.place.empty();
    if (gone || (!job.ended && same)) wanted.erase(found);
    if (!job.ended && !same) over.push_back(job.spec.id);
  }
  return over;
}

void PodWatch::Apply(const std::vector<kubernetes::ContainerResources>& containers) {
  Wanted wanted = Plan(containers);
  const std::vector<std::string> over = TakeEnded(wanted.jobs);
  const bool changes = !over.empty() || !wanted.jobs.empty();
  if (options_.before_change && changes) options_.before_change();
  for (const std::string& id : over) (void)jobs_.End(id);
  for (const auto& [id, spec] : wanted.jobs)
    if (const auto registered = jobs_.Register(spec); !registered.ok())
      log::Warning("{} is not counted: {}", id, registered.error().message);
  if (options_.begun && !wanted.jobs.empty()) options_.begun();
  Note(wanted);
}

void PodWatch::Note(const Wanted& wanted) {
  bool told = false;
  {
    const std::lock_guard lock(mutex_);
    told = state_.unknown_devices == wanted.unknown_devices;
    state_.containers = wanted.containers;
    state_.unknown_devices = wanted.unknown_devices;
  }
  if (!told && wanted.unknown_devices > 0)
    log::Warning(
        "the kubelet gave {} GPUs to containers that are none of this node: device "
        "plugins must name them by UUID or PCI address",
        wanted.unknown_devices);
}

std::string PodWatch::NamespaceOf(std::string_view cgroup) {
  const auto job = JobOfCgroup(cgroup);
  if (!job || job->kind != JobKind::kPod) return {};
  const std::string uid = job->job.substr(kPodPlace.size());
  const std::lock_guard lock(mutex_);
  const bool stale = !names_read_ || clock_.Now() - *names_read_ >= options_.look_period;
  if (!names_.contains(uid) && stale) {
    if (auto logged = ReadLoggedPods(options_.logs)) names_ = std::move(logged->names);
    names_read_ = clock_.Now();
  }
  const auto found = names_.find(uid);
  return found == names_.end() ? std::string() : found->second.name_space;
}

}  // namespace zeus::daemon
