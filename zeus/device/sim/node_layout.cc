#include "zeus/device/sim/node_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

#include "zeus/base/version.h"
#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/workload_data.h"

namespace zeus::sim {

// A number that two programs share if they can share a node: it follows from the version of Zeus,
// from where every part of a node lies in memory, and from the figures of GPU models and workloads,
// to which the state of a GPU refers by index. So the library and the command of different builds
// do not misread each other. Code alone that changes without any of these is not seen.
std::uint64_t LayoutFingerprint();

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

namespace {

constexpr std::size_t kAlignment = 64;

constexpr double kFarthestStart = 1e10;  // In seconds; some centuries.

constexpr std::size_t RoundUp(std::size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

// Readers of different GPUs share no cache line.
constexpr std::size_t kHeaderSize = RoundUp(sizeof(NodeHeader));
constexpr std::size_t kSlotStride = RoundUp(sizeof(CoreSlot));

std::size_t SlotOffset(unsigned index) { return kHeaderSize + index * kSlotStride; }

Error Damaged(std::string_view reason) {
  return {ErrorCode::kUnavailable, fmt::format("the file is damaged ({})", reason)};
}

}  // namespace

std::size_t NodeSize(unsigned gpu_count) { return SlotOffset(gpu_count); }

Status FormatNode(void* memory, const NodeSpec& spec, double start, std::string_view boot_id) {
  const auto gpu_count = static_cast<unsigned>(spec.gpus.size());
  auto* header = new (memory) NodeHeader{.magic = kNodeMagic,
                                         .fingerprint = LayoutFingerprint(),
                                         .file_size = NodeSize(gpu_count),
                                         .seed = spec.seed,
                                         .start = start,
                                         .time_scale = spec.time_scale,
                                         .gpu_count = gpu_count,
                                         .stopped = 0,
                                         .boot_id = {}};
  boot_id.copy(header->boot_id.data(), header->boot_id.size() - 1);
  for (unsigned i = 0; i < gpu_count; ++i) {
    GpuCore core(*spec.gpus[i], spec.seed, i);
    if (spec.ambient) core.SetAmbient(*spec.ambient);
    ZEUS_RETURN_IF_ERROR(SlotAt(memory, i).Format(core));
  }
  return Ok();
}

Status CheckLayout(const void* memory, std::size_t size) {
  if (size < sizeof(NodeHeader)) return Damaged(fmt::format("only {} bytes", size));
  const auto& header = *static_cast<const NodeHeader*>(memory);
  if (header.magic != kNodeMagic) return Damaged("not a simulated node");
  if (header.fingerprint != LayoutFingerprint())
    return Error{ErrorCode::kNotSupported, "it was started by another build of Zeus"};
  if (header.gpu_count == 0 || header.gpu_count > kMaxGpusPerNode) return Damaged("GPU count");
  if (header.file_size != NodeSize(header.gpu_count)) return Damaged("recorded size");
  if (size != header.file_size)
    return Damaged(fmt::format("{} of {} bytes", size, header.file_size));
  if (!(std::abs(header.start) < kFarthestStart) || !(header.time_scale >= kMinTimeScale) ||
      header.time_scale > kMaxTimeScale)
    return Damaged("clock");
  if (std::find(header.boot_id.begin(), header.boot_id.end(), '\0') == header.boot_id.end())
    return Damaged("boot id");
  return Ok();
}

std::string_view BootId(const NodeHeader& header) { return header.boot_id.data(); }

CoreSlot& SlotAt(void* memory, unsigned index) {
  return *reinterpret_cast<CoreSlot*>(static_cast<char*>(memory) + SlotOffset(index));
}

const CoreSlot& SlotAt(const void* memory, unsigned index) {
  return *reinterpret_cast<const CoreSlot*>(static_cast<const char*>(memory) + SlotOffset(index));
}

}  // namespace zeus::sim
