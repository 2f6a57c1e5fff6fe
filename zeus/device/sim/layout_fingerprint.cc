#include "zeus/device/sim/layout_fingerprint.h"

#include <array>
#include <bit>
#include <cstddef>
#include <string_view>

#include "zeus/base/version.h"
#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/node_layout.h"
#include "zeus/device/sim/workload_data.h"

namespace zeus::sim {
namespace {

// FNV-1a.
class Hash {
 public:
  void Add(std::uint64_t word) {
    for (int shift = 0; shift < 64; shift += 8) AddByte(static_cast<std::uint8_t>(word >> shift));
  }
  void Add(double number) { Add(std::bit_cast<std::uint64_t>(number)); }
  void Add(Seconds time) { Add(time.count()); }
  template <class Unit>
  void Add(Quantity<Unit> quantity) {
    Add(quantity.value());
  }
  void Add(std::string_view text) {
    for (const char c : text) AddByte(static_cast<std::uint8_t>(c));
    Add(text.size());
  }
  template <class... Parts>
  void AddAll(const Parts&... parts) {
    (Add(parts), ...);
  }

  std::uint64_t value() const { return value_; }

 private:
  void AddByte(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }

  std::uint64_t value_ = 0xcbf29ce484222325;
};

template <class... Types>
void AddSizes(Hash& hash) {
  (hash.Add(sizeof(Types)), ...);
}

void AddHeader(Hash& hash) {
  hash.AddAll(offsetof(NodeHeader, file_size), offsetof(NodeHeader, seed),
              offsetof(NodeHeader, start), offsetof(NodeHeader, time_scale),
              offsetof(NodeHeader, gpu_count), offsetof(NodeHeader, stopped),
              offsetof(NodeHeader, boot_id), sizeof(NodeHeader));
}

void AddModel(Hash& hash, const GpuModel& model) {
  hash.AddAll(model.id, model.idle_power, model.limit_range.min, model.limit_range.max,
              model.default_limit, model.graphics_clock.min, model.graphics_clock.max,
              model.graphics_clock_step, model.memory_clock, model.memory_bytes,
              model.peak_operations, model.memory_bandwidth);
  const SensorSpec& sensors = model.sensors;
  hash.AddAll(sensors.power_update, sensors.power_window,
              sensors.counter_update.value_or(Seconds(0)), sensors.gain_spread,
              sensors.offset_spread);
  const ThermalSpec& thermal = model.thermal;
  hash.AddAll(thermal.ambient, thermal.kelvin_per_watt, thermal.time_constant,
              thermal.leakage_watts_per_kelvin, thermal.slowdown, thermal.release);
}

void AddWorkload(Hash& hash, const Workload& workload) {
  hash.AddAll(workload.name, workload.dataset_size);
  for (const OperatingFit& fit : workload.fits->operating) {
    using Numbers = std::array<double, sizeof(OperatingFit) / sizeof(double)>;
    for (const double number : std::bit_cast<Numbers>(fit)) hash.Add(number);
  }
}

std::uint64_t Compute() {
  Hash hash;
  hash.Add(std::string_view(Version()));
  AddHeader(hash);
  AddSizes<CoreSlot, GpuCore, Random, BoardSensors, Load, LoadTable, Fault, FaultSchedule,
           OperatingState, StepProfile, ThermalPath, Regime, PowerHistory, CounterRegister>(hash);
  for (const std::size_t offset : GpuCore::PartOffsets()) hash.Add(offset);
  for (const GpuModel& model : GpuModels()) AddModel(hash, model);
  for (const Workload& workload : Workloads()) AddWorkload(hash, workload);
  return hash.value();
}

}  // namespace

std::uint64_t LayoutFingerprint() {
  static const std::uint64_t fingerprint = Compute();
  return fingerprint;
}

}  // namespace zeus::sim
