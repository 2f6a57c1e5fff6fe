#include "zeus/base/ticker.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace zeus {

Ticker::Ticker(const char* name, Step step) : step_(std::move(step)) {
  // Signals are the program's business: its own threads handle them, never this one.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Loop(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), name);
}

Ticker::~Ticker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Ticker::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const TimePoint next = step_();
    lock.lock();
    wake_.wait_until(lock, std::chrono::time_point_cast<std::chrono::nanoseconds>(next),
                     [this] { return stopping_; });
  }
}

}  // namespace zeus
