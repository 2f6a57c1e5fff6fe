#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {

inline constexpr unsigned kMaxGpusPerNode = 64;
inline constexpr double kMinTimeScale = 1e-3;
inline constexpr double kMaxTimeScale = 1e6;

// Description of a simulated node, before it is started.
struct NodeSpec {
  std::vector<const GpuModel*> gpus;
  std::uint64_t seed = 0;
  double time_scale = 1.0;         // Node seconds per real second.
  std::optional<Celsius> ambient;  // Where it is not the models' own.
};

// "4xV100,2xA100", "H100": in this order, one index per GPU. kInvalidArgument quotes the part
// that is wrong.
Result<std::vector<const GpuModel*>> ParseGpuList(std::string_view text);

// A count per run of equal models: "4xV100,2xA100". The inverse of ParseGpuList().
std::string FormatGpuList(const std::vector<const GpuModel*>& gpus);

// Letters, digits, '.', '_' and '-'; at most 64 of them: a node's name is part of a file name.
Status CheckNodeName(std::string_view name);

// At least one GPU, not too many, and a time scale inside its range.
Status CheckNodeSpec(const NodeSpec& spec);

// One GPU in shared memory: two copies of its state and a sequence number whose parity says which
// of them is valid. Readers neither lock nor write, so they may map the memory read-only. Writers
// hold a robust mutex, fill the other copy and advance the sequence last: a writer that dies at
// any instruction loses its own change and nothing else.
//
// All functions are safe for any number of threads and processes. Lives in shared memory only:
// never constructed there but through Format().
class CoreSlot {
 public:
  // Prepares fresh memory that no other process can see yet.
  Status Format(const GpuCore& core);

  std::uint64_t sequence() const { return sequence_.load(std::memory_order_acquire); }

  // A reader's own copy of the GPU, and when it was taken.
  struct Snapshot {
    std::uint64_t sequence;
    GpuCore core;
  };

  // The valid copy. kUnavailable when the memory does not hold a GPU's state (a damaged file).
  Result<Snapshot> Load() const;

  // Exclusive right to Store(). kUnavailable when another writer holds it for seconds.
  Status Lock();
  void Unlock();

  // Publishes a new state. Only while locked.
  void Store(const GpuCore& core);

 private:
  static_assert(std::is_trivially_copyable_v<GpuCore>);
  static_assert(sizeof(GpuCore) % sizeof(std::uint64_t) == 0);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  static constexpr std::size_t kWords = sizeof(GpuCore) / sizeof(std::uint64_t);
  using Words = std::array<std::uint64_t, kWords>;

  struct Copy {
    std::array<std::atomic<std::uint64_t>, kWords> words;
    std::atomic<std::uint64_t> checksum;
  };

  // Whether the checksum is right.
  static bool LoadCopy(const Copy& copy, Words& words);

  pthread_mutex_t mutex_;
  std::atomic<std::uint64_t> sequence_;
  std::array<Copy, 2> copies_;
};

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
