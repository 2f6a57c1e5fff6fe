#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_core.h"

namespace zeus::sim {

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

}  // namespace zeus::sim
