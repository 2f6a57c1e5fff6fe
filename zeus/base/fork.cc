#include "zeus/base/fork.h"

#include <pthread.h>

#include <atomic>

namespace zeus {
namespace {

std::atomic<unsigned> fork_generation{0};

}  // namespace

void WatchForks() {
  static const int kRegistered = ::pthread_atfork(
      nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
  (void)kRegistered;  // Fails only without memory.
}

unsigned ForkGeneration() { return fork_generation.load(std::memory_order_relaxed); }

}  // namespace zeus
