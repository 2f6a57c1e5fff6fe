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
  try {
    thread_ = std::thread([this] { Loop(); });
  } catch (...) {
    // The caller keeps its signals: a program that cannot go on must still be told to end.
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
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

void Ticker::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_.notify_one();
}

void Ticker::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    lock.unlock();
    const TimePoint next = step_();
    lock.lock();
    const auto called = [this] { return stopping_ || woken_; };
    if (next == kWhenWoken) {
      wake_.wait(lock, called);  // No number of nanoseconds is that large.
    } else {
      wake_.wait_until(lock, std::chrono::time_point_cast<std::chrono::nanoseconds>(next), called);
    }
  }
}

bool IsNoThread(const std::system_error& error) {
  return error.code() == std::errc::resource_unavailable_try_again;
}

Error NoThreadError() {
  return {ErrorCode::kUnavailable,
          "the system gives this process no more threads: raise its limit (ulimit -u, TasksMax= of "
          "the systemd unit, or the pids limit of the container)"};
}

}  // namespace zeus
