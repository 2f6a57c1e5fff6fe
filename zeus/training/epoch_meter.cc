#include "zeus/training/epoch_meter.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <string_view>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

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

namespace {

std::vector<std::string> Counted(const EnergyMonitor& monitor) {
  std::vector<std::string> names;
  for (const std::size_t device : CountedDevices(monitor))
    names.push_back(monitor.device_name(device));
  return names;
}

// Converts exceptions into errors: at the edges of windows a monitor calls the user's synchronize
// function, which may throw.
template <class Function>
auto WithoutExceptions(Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kUnavailable, Printable(exception.what())};
  }
}

}  // namespace

EpochMeter::EpochMeter(EnergyMonitor& monitor, std::string window)
    : monitor_(monitor), window_(std::move(window)), counted_(Counted(monitor)) {}

EpochMeter::~EpochMeter() {
  if (open_) (void)monitor_.CancelWindow(window_);
}

void EpochMeter::Begin() {
  open_.reset();
  begun_ = clock().Now();
  const auto id = WithoutExceptions([&] { return monitor_.BeginWindow(window_); });
  if (id.ok()) {
    open_ = id.value();
  } else {
    (void)Unknown(id.error());
  }
}

EpochReading EpochMeter::Peek() {
  if (!open_) return Unknown({ErrorCode::kUnavailable, "the epoch has no window"});
  auto measured = WithoutExceptions([&] { return monitor_.PeekWindow(window_); });
  return measured.ok() ? Read(std::move(measured).value()) : Unknown(measured.error());
}

EpochReading EpochMeter::End() {
  const std::optional<WindowId> id = std::exchange(open_, std::nullopt);
  if (!id) return Unknown({ErrorCode::kUnavailable, "the epoch has no window"});
  auto measured = WithoutExceptions([&] { return monitor_.EndWindow(window_); });
  if (!measured.ok()) {
    (void)monitor_.CancelWindow(window_);
    return Unknown(measured.error());
  }
  EpochReading reading = Read(std::move(measured).value());
  reading.unrefined = id;
  return reading;
}

void EpochMeter::Refine(EpochReading& reading, Seconds timeout) {
  if (!reading.unrefined) return;
  auto measured = monitor_.Refine(*reading.unrefined, timeout);
  if (!measured.ok()) {  // The monitor has dropped the window, so the reading stays as it is.
    reading.unrefined.reset();
    return;
  }
  const bool refined = measured.value().stage == Measurement::Stage::kRefined;
  const std::optional<WindowId> id = reading.unrefined;
  reading = Read(std::move(measured).value());
  if (!refined) reading.unrefined = id;
}

EpochReading EpochMeter::Read(Measurement measured) const {
  std::erase_if(measured.devices, [&](const DeviceMeasurement& device) {
    return std::ranges::find(counted_, device.device) == counted_.end();
  });
  const Measurement::Total total = measured.Sum();
  const double all = total.sigma.value();
  const double shared = total.shared_sigma.value();
  return {.time = measured.time,
          .energy = total.energy,
          .own_sigma = Joules(std::sqrt(std::max(0.0, all * all - shared * shared))),
          .shared_sigma = total.shared_sigma,
          .missing = total.missing};
}

EpochReading EpochMeter::Unknown(const Error& error) {
  if (!std::exchange(failed_, true))
    log::Warning("the energy of the training is not known: {}", error.message);
  return {.time = clock().Now() - begun_, .missing = counted_};
}

}  // namespace zeus
