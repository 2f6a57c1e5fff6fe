#include "zeus/device/sim/core_slot.h"

#include <bit>
#include <cerrno>
#include <ctime>

namespace zeus::sim {
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
  // Acquire, and release in Store(): whoever sees a word of a newer state also sees the sequence
  // that preceded it, without fences that thread sanitizers do not understand.
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

}  // namespace zeus::sim
