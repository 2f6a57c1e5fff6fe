#include "zeus/device/sim/node_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "zeus/device/sim/layout_fingerprint.h"

namespace zeus::sim {
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
