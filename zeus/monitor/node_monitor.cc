#include "zeus/monitor/node_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/monitor/profile_store.h"
#include "zeus/monitor/sharing/shared_activity_board.h"

namespace zeus {
namespace {

// "gpu:2" is called 2, also where gpu:1 is lost.
std::string GpuName(unsigned gpu) { return fmt::format("gpu:{}", gpu); }

std::string LostReason(const Node& node, unsigned gpu) {
  const auto absent = std::ranges::find(node.absent, GpuName(gpu), &Absence::what);
  return absent == node.absent.end() ? "" : absent->reason;
}

Status CheckGpus(const Node& node, const std::vector<unsigned>& wanted) {
  const std::size_t shown = node.gpus.size() + node.lost_gpus;
  for (const unsigned index : wanted) {
    if (std::ranges::any_of(node.gpus,
                            [&](const auto& gpu) { return gpu->name() == GpuName(index); }))
      continue;
    if (const std::string reason = LostReason(node, index); !reason.empty())
      return Error{ErrorCode::kNotFound,
                   fmt::format("GPU {} cannot be used: {} (see zeus doctor)", index, reason)};
    if (shown == 0)
      return Error{
          ErrorCode::kNotFound,
          fmt::format("there is no GPU {}: no GPU was found here (see zeus doctor)", index)};
    return Error{
        ErrorCode::kNotFound,
        fmt::format("there is no GPU {}: this machine shows GPUs 0 to {}", index, shown - 1)};
  }
  return Ok();
}

bool IsWanted(const std::optional<std::vector<unsigned>>& wanted, const Gpu& gpu) {
  return !wanted ||
         std::ranges::any_of(*wanted, [&](unsigned index) { return gpu.name() == GpuName(index); });
}

// Returns a name of the device that is the same in every process. Names like "gpu:0" are not: they
// count the devices that a process may see. Those of CPUs and rails are.
std::string SharedKey(const MonitoredDevice& device, const std::string& boot_id) {
  if (device.gpu != nullptr) {
    const GpuIdentity& identity = device.gpu->identity();
    if (!identity.uuid.empty()) return identity.uuid;
    if (!identity.pci_address.empty()) return identity.pci_address;
  }
  return device.meter->name() + "@" + boot_id;
}

Result<std::vector<std::string>> SharedKeys(const std::vector<MonitoredDevice>& devices) {
  ZEUS_TRY(const std::string boot_id, ReadLine("/proc/sys/kernel/random/boot_id"));
  std::vector<std::string> keys;
  for (const MonitoredDevice& device : devices) keys.push_back(SharedKey(device, boot_id));
  return keys;
}

Result<std::unique_ptr<SharedActivityBoard>> OpenBoard(const Result<std::vector<std::string>>& keys,
                                                       Clock& clock) {
  if (!keys.ok()) return keys.error();
  ZEUS_TRY(const std::filesystem::path path, activity::DefaultActivityPath());
  return SharedActivityBoard::Open(path, keys.value(), clock, ActivityGroup::Current());
}

// Null when the energy cannot be shared: then this process measures alone, which is right unless
// others measure the same devices.
std::unique_ptr<ActivityBoard> TryToShare(const Result<std::vector<std::string>>& keys,
                                          Clock& clock) {
  auto board = OpenBoard(keys, clock);
  if (board.ok()) return std::move(board).value();
  log::Warning("energy is not shared with other processes that measure: {}", board.error().message);
  return nullptr;
}

// A device that another process reads needs no thread here as long as no reading is missed for good
// when the program does nothing for minutes: a counter goes on counting.
bool NeedsThread(const EnergyMonitor& monitor) {
  for (std::size_t device = 0; device < monitor.device_count(); ++device) {
    if (!monitor.follows(device)) return true;
    if (monitor.Now(device).source != EnergySource::kCounter) return true;
  }
  return false;
}

std::vector<Gpu*> GpusOf(const std::vector<MonitoredDevice>& devices) {
  std::vector<Gpu*> gpus;
  for (const MonitoredDevice& device : devices) gpus.push_back(device.gpu);
  return gpus;
}

// The longest time between two reads of a device that loses no energy.
Seconds LongestPause(const std::vector<MonitoredDevice>& devices) {
  Seconds longest = Seconds::max();
  for (const MonitoredDevice& device : devices)
    longest = std::min(longest, device.meter->LongestReadInterval().value_or(longest));
  return longest;
}

// The pause as the options ask for it, but none that loses energy.
std::function<Seconds()> SafePause(std::function<Seconds()> pause,
                                   const std::vector<MonitoredDevice>& devices) {
  if (!pause) return nullptr;
  return [pause = std::move(pause), longest = LongestPause(devices)] {
    return std::min(pause(), longest);
  };
}

// A rail that feeds the whole board contains the GPU and CPU that are listed already.
void AddRails(const Node& node, std::vector<MonitoredDevice>& devices) {
  const bool others = !devices.empty();
  for (const auto& rail : node.rails) {
    const bool total = rail->role() == PowerRail::Role::kTotal;
    devices.push_back(
        {.meter = rail.get(), .sensor = PriorRailProfile(), .in_total = total && !others});
  }
}

}  // namespace

Result<std::unique_ptr<NodeMonitor>> NodeMonitor::OpenThisMachine(Clock& clock,
                                                                  NodeMonitorOptions options) {
  ZEUS_TRY(Node node,
           options.find_devices ? options.find_devices(clock) : Discover(RealSurroundings(clock)));
  return Open(clock, std::move(node), std::move(options));
}

Result<std::unique_ptr<NodeMonitor>> NodeMonitor::Open(Clock& clock, Node node,
                                                       NodeMonitorOptions options) {
  if (options.gpus) ZEUS_RETURN_IF_ERROR(CheckGpus(node, *options.gpus));
  if (!options.calibration)
    options.calibration = ProfileStore::FromEnvironment(ProcessEnvironment()).Lookup();
  std::vector<MonitoredDevice> devices;
  std::vector<bool> calibrated;
  for (const auto& found : node.gpus) {
    Gpu* gpu = found.get();
    if (!IsWanted(options.gpus, *gpu)) continue;
    std::optional<SensorProfile> profile = options.calibration(gpu->identity());
    calibrated.push_back(profile.has_value());
    devices.push_back({.meter = gpu,
                       .gpu = gpu,
                       .sensor = profile ? *std::move(profile) : PriorProfile(gpu->identity())});
  }
  for (const auto& cpu : node.cpus) {
    if (!options.cpus) break;
    devices.push_back({.meter = cpu.get(), .sensor = PriorCpuProfile()});
    if (EnergyMeter* dram = cpu->dram())
      devices.push_back({.meter = dram, .sensor = PriorCpuProfile()});
  }
  if (options.rails) AddRails(node, devices);
  std::vector<Gpu*> gpus = GpusOf(devices);
  calibrated.resize(devices.size(), false);  // Only GPUs, which come first, can be.
  const auto keys = SharedKeys(devices);
  auto board = options.share ? TryToShare(keys, clock) : nullptr;
  const bool shares = board != nullptr;
  auto shortest_pause = SafePause(std::move(options.shortest_pause), devices);
  auto monitor = std::make_unique<EnergyMonitor>(
      clock, std::move(devices),
      EnergyMonitor::Options{.synchronize = std::move(options.synchronize),
                             .telemetry_interval = options.telemetry_interval,
                             .recorded = std::move(options.recorded),
                             .board = std::move(board)});
  const bool thread = options.thread && (shares || NeedsThread(*monitor));
  std::vector<std::string> names = keys.ok() ? keys.value() : std::vector<std::string>(gpus.size());
  std::unique_ptr<NodeMonitor> recorder(new NodeMonitor(std::move(node), std::move(gpus),
                                                        std::move(names), std::move(calibrated),
                                                        std::move(monitor)));
  if (thread) recorder->StartThread(std::move(shortest_pause));
  return recorder;
}

NodeMonitor::NodeMonitor(Node node, std::vector<Gpu*> gpus, std::vector<std::string> keys,
                         std::vector<bool> calibrated, std::unique_ptr<EnergyMonitor> monitor)
    : node_(std::move(node)),
      gpus_(std::move(gpus)),
      keys_(std::move(keys)),
      calibrated_(std::move(calibrated)),
      monitor_(std::move(monitor)) {}

NodeMonitor::~NodeMonitor() = default;

void NodeMonitor::StartThread(std::function<Seconds()> shortest_pause) {
  ticker_ =
      std::make_unique<Ticker>("zeus-recorder", [this, shortest_pause = std::move(shortest_pause)] {
        const TimePoint next = monitor_->Step();
        return shortest_pause ? std::max(next, monitor_->clock().Now() + shortest_pause()) : next;
      });
}

void NodeMonitor::Wake() {
  if (ticker_) ticker_->Wake();
}

}  // namespace zeus
