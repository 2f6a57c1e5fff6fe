#include "zeus/base/detached_call.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <system_error>
#include <thread>

namespace zeus {
namespace {

std::atomic<int> abandoned_calls{0};

// A thread that inherits a mask without any signal: signals are the program's business.
bool StartDetached(const std::function<void()>& work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

struct DetachedThread::State {
  FileDescriptor finished_event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  bool finished = false;   // Guarded by mutex.
  bool abandoned = false;  // Guarded by mutex.

  void Finish() {
    const std::lock_guard lock(mutex);
    finished = true;
    if (abandoned) --abandoned_calls;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(finished_event.get(), &one, sizeof one);
  }
};

DetachedThread::DetachedThread(std::function<void()> work) : state_(std::make_shared<State>()) {
  auto run = [state = state_, work = std::move(work)]() mutable {
    work();
    work = nullptr;  // The work releases what it holds before its end is announced.
    state->Finish();
  };
  // Without the event the end could not be signalled, so the caller's own thread does the work.
  if (!state_->finished_event.valid() || !StartDetached(run)) run();
}

DetachedThread::~DetachedThread() {
  const std::lock_guard lock(state_->mutex);
  if (state_->finished) return;
  state_->abandoned = true;
  ++abandoned_calls;
}

int DetachedThread::descriptor() const { return state_->finished_event.get(); }

bool DetachedThread::FinishedWithin(Seconds timeout) const {
  const auto finished = [this] {
    const std::lock_guard lock(state_->mutex);
    return state_->finished;
  };
  if (finished()) return true;
  ::pollfd event{.fd = descriptor(), .events = POLLIN, .revents = 0};
  constexpr double kMostMilliseconds = 1e9;
  const double milliseconds = std::clamp(timeout.count() * 1e3, 0.0, kMostMilliseconds);
  ::poll(&event, 1, static_cast<int>(std::ceil(milliseconds)));
  return finished();
}

int AbandonedCalls() { return abandoned_calls; }

}  // namespace zeus
