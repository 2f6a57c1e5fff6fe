#include "zeus/device/sim/node_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>

#include "zeus/base/text.h"
#include "zeus/base/version.h"
#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/inference/physics.h"
#include "zeus/device/sim/workload_data.h"

namespace zeus::sim {

namespace {

constexpr std::size_t kMaxNameLength = 64;

Error BadList(std::string_view text, std::string_view part, std::string_view reason) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("bad GPU list {}: {}: {}; write it like 4xV100,2xA100", Quote(text),
                      Quote(part), reason)};
}

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

struct Group {
  std::string_view count = "1";
  std::string_view model;
};

// "4xV100" or "V100": the count is what stands before the first 'x' if it is made of digits.
Group SplitGroup(std::string_view part) {
  const auto cross = part.find_first_of("xX");
  if (cross == std::string_view::npos) return {.model = part};
  const std::string_view count = part.substr(0, cross);
  const bool digits = std::all_of(count.begin(), count.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  // "RTX6000" has an x too, but no number before it.
  if (!digits) return {.model = part};
  return {.count = count, .model = part.substr(cross + 1)};
}

}  // namespace

Result<std::vector<const GpuModel*>> ParseGpuList(std::string_view text) {
  std::vector<const GpuModel*> gpus;
  for (const std::string_view part : SplitAtCommas(text)) {
    const Group group = SplitGroup(part);
    const auto count = ParseUnsigned(group.count);
    if (!count.ok() || count.value() == 0)
      return BadList(text, part, "the count is not a positive number");
    auto model = FindGpuModel(group.model);
    if (!model.ok()) return BadList(text, part, model.error().message);
    if (count.value() > kMaxGpusPerNode - gpus.size()) {
      return BadList(text, part, fmt::format("a node holds at most {} GPUs", kMaxGpusPerNode));
    }
    gpus.insert(gpus.end(), count.value(), model.value());
  }
  return gpus;
}

std::string FormatGpuList(const std::vector<const GpuModel*>& gpus) {
  std::string text;
  for (auto first = gpus.begin(); first != gpus.end();) {
    const auto last =
        std::find_if(first, gpus.end(), [&](const auto* gpu) { return gpu != *first; });
    text += fmt::format("{}{}x{}", text.empty() ? "" : ",", last - first, (*first)->id);
    first = last;
  }
  return text;
}

Status CheckNodeName(std::string_view name) {
  const bool fine = !name.empty() && name.size() <= kMaxNameLength &&
                    std::all_of(name.begin(), name.end(), IsNameCharacter);
  if (fine) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("bad node name {}: use 1 to {} letters, digits, '.', '_' or '-'",
                           Quote(name), kMaxNameLength)};
}

Status CheckNodeSpec(const NodeSpec& spec) {
  if (spec.gpus.empty() || spec.gpus.size() > kMaxGpusPerNode) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a node has 1 to {} GPUs, not {}", kMaxGpusPerNode, spec.gpus.size())};
  }
  if (!(spec.time_scale >= kMinTimeScale) || spec.time_scale > kMaxTimeScale) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("bad time scale {}: it must be from {} to {}", spec.time_scale,
                             kMinTimeScale, kMaxTimeScale)};
  }
  return Ok();
}

namespace {

// Longer than any writer needs, short enough that a stopped writer does not hang its peers.
constexpr int kLockTimeoutSeconds = 5;

// Detects a damaged file, not an attacker. Starts from a number, so that zeros do not pass.
class Checksum {
 public:
  void Add(std::uint64_t word) {
    sum_ += word;
    sum_of_sums_ += sum_;
  }
  std::uint64_t value() const { return sum_ ^ std::rotl(sum_of_sums_, 32); }

 private:
  std::uint64_t sum_ = 0x5a45555353494d31;
  std::uint64_t sum_of_sums_ = 0;
};

}  // namespace

Status CoreSlot::Format(const GpuCore& core) {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  const int failure = ::pthread_mutex_init(&mutex_, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
  if (failure != 0) return Error{ErrorCode::kInternal, "cannot create a lock in shared memory"};
  sequence_.store(0, std::memory_order_relaxed);
  Store(core);
  return Ok();
}

bool CoreSlot::LoadCopy(const Copy& copy, Words& words) {
  Checksum checksum;
  // Acquire, and release in Store(): a reader that sees a word of a newer state also sees the
  // sequence that preceded it, without fences that thread sanitizers do not understand.
  for (std::size_t i = 0; i < kWords; ++i) {
    words[i] = copy.words[i].load(std::memory_order_acquire);
    checksum.Add(words[i]);
  }
  return checksum.value() == copy.checksum.load(std::memory_order_acquire);
}

Result<CoreSlot::Snapshot> CoreSlot::Load() const {
  Words words;
  while (true) {
    const std::uint64_t before = sequence();
    const bool whole = LoadCopy(copies_[before % 2], words);
    // The copy is overwritten only after the sequence has moved on: then take the newer one.
    if (sequence_.load(std::memory_order_relaxed) != before) continue;
    if (!whole) return Error{ErrorCode::kUnavailable, "its state is damaged"};
    return Snapshot{.sequence = before, .core = std::bit_cast<GpuCore>(words)};
  }
}

Status CoreSlot::Lock() {
  // The lock is usually free. The thread sanitizer learns from this call, but not from the timed
  // one, that a dead owner's lock passes to the next owner.
  int failure = ::pthread_mutex_trylock(&mutex_);
  if (failure == EBUSY) {
    timespec deadline{};
    ::clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += kLockTimeoutSeconds;
    failure = ::pthread_mutex_timedlock(&mutex_, &deadline);
  }
  // The previous owner died. Its change was either published whole or not at all.
  if (failure == EOWNERDEAD) ::pthread_mutex_consistent(&mutex_);
  if (failure == 0 || failure == EOWNERDEAD) return Ok();
  return Error{ErrorCode::kUnavailable, "another process holds its lock"};
}

void CoreSlot::Unlock() { ::pthread_mutex_unlock(&mutex_); }

void CoreSlot::Store(const GpuCore& core) {
  const auto words = std::bit_cast<Words>(core);
  const std::uint64_t next = sequence_.load(std::memory_order_relaxed) + 1;
  Copy& copy = copies_[next % 2];
  Checksum checksum;
  for (std::size_t i = 0; i < kWords; ++i) {
    copy.words[i].store(words[i], std::memory_order_release);
    checksum.Add(words[i]);
  }
  copy.checksum.store(checksum.value(), std::memory_order_release);
  sequence_.store(next, std::memory_order_release);
}

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

void AddInference(Hash& hash, const InferenceConstants& constants) {
  hash.AddAll(constants.memory_efficiency, constants.arithmetic_efficiency, constants.per_sequence,
              constants.per_exchange, constants.per_routed, constants.static_power,
              constants.per_byte, constants.per_operation, constants.per_sequence_energy,
              constants.per_routed_energy, constants.small_kernels);
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
  for (const GpuModel& model : GpuModels()) {
    AddModel(hash, model);
    AddInference(hash, ConstantsFor(model));
  }
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
