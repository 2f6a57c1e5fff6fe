#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/device/sim/core_slot.h"
#include "zeus/device/sim/node_spec.h"

namespace zeus::sim {

// The bytes of a node: this header, then one CoreSlot per GPU. A program reads only nodes whose
// LayoutFingerprint() is its own.
inline constexpr std::uint64_t kNodeMagic = 0x314d49535355455a;  // "ZEUSSIM1"

struct NodeHeader {
  std::uint64_t magic;
  std::uint64_t fingerprint;
  std::uint64_t file_size;
  std::uint64_t seed;
  double start;  // On CLOCK_MONOTONIC, in seconds. Means something during one boot only.
  double time_scale;
  std::uint32_t gpu_count;
  std::atomic<std::uint32_t> stopped;  // Set by stop, for those that still have the node mapped.
  std::array<char, 40> boot_id;
};

std::size_t NodeSize(unsigned gpu_count);

// Fills fresh memory of NodeSize() bytes.
Status FormatNode(void* memory, const NodeSpec& spec, double start, std::string_view boot_id);

// Whether `size` bytes hold a node of this layout. The message does not name the node.
Status CheckLayout(const void* memory, std::size_t size);

// The functions below may be called only after CheckLayout() succeeded.
std::string_view BootId(const NodeHeader& header);
CoreSlot& SlotAt(void* memory, unsigned index);
const CoreSlot& SlotAt(const void* memory, unsigned index);

}  // namespace zeus::sim
