#include "zeus/training/counted_devices.h"

#include <algorithm>
#include <string_view>

#include "zeus/base/file.h"

namespace zeus {
namespace {

constexpr char kSeparator = '\n';

// Returns a name of a GPU that is the same in every process and unique over all machines; empty if
// no other process can see the GPU, and for devices that are no GPU.
std::string GlobalName(const Gpu* gpu, const std::string& boot_id) {
  if (gpu == nullptr || gpu->EndsWithProcess()) return "";
  const GpuIdentity& identity = gpu->identity();
  return (identity.uuid.empty() ? identity.pci_address : identity.uuid) + "@" + boot_id;
}

bool Contains(std::string_view keys, const std::string& key) {
  const std::string line = kSeparator + key + kSeparator;
  return keys.find(line) != std::string_view::npos;
}

}  // namespace

std::vector<std::size_t> CountedDevices(const EnergyMonitor& monitor) {
  std::vector<std::size_t> gpus;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < monitor.device_count(); ++i) {
    if (!monitor.device_in_total(i)) continue;
    all.push_back(i);
    if (monitor.device_name(i).starts_with("gpu:")) gpus.push_back(i);
  }
  return gpus.empty() ? all : gpus;
}

Result<std::vector<SharedGpu>> GpusOfEarlierRanks(NodeMonitor& monitor, Collective& collective) {
  std::vector<SharedGpu> shared;
  if (collective.size() == 1) return shared;
  // The boot id stands for the machine. Without it, GPUs are distinguished by their UUIDs alone.
  const auto boot_id = ReadLine("/proc/sys/kernel/random/boot_id");
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < monitor.monitor().device_count(); ++i)
    keys.push_back(GlobalName(monitor.gpu(i), boot_id.ok() ? boot_id.value() : ""));
  std::string mine(1, kSeparator);
  for (const std::string& key : keys) mine += key + kSeparator;
  ZEUS_TRY(const std::vector<std::string> ranks, Agreement(collective).Gather(mine));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].empty()) continue;
    const auto first = std::ranges::find_if(
        ranks, [&](const std::string& others) { return Contains(others, keys[i]); });
    const int rank = static_cast<int>(first - ranks.begin());
    if (rank < collective.rank()) shared.push_back({.device = i, .first_rank = rank});
  }
  return shared;
}

}  // namespace zeus
