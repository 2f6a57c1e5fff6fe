#include "zeus/base/termination_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

namespace zeus {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr char kStop = 0;

// The state that the signal handler uses. Written before the handlers are installed.
std::array<struct sigaction, kSignals.size()> actions_before;
std::atomic<pid_t> watching_process{0};
std::atomic<int> pipe_to_thread{-1};
static_assert(std::atomic<int>::is_always_lock_free);

std::size_t IndexOfSignal(int signal) {
  std::size_t i = 0;
  while (i + 1 < kSignals.size() && kSignals[i] != signal) ++i;
  return i;
}

void OnSignal(int signal) {
  const int error_before = errno;
  if (::getpid() == watching_process) {
    const char message = static_cast<char>(signal);
    // A full pipe means that a thousand signals came before this one.
    [[maybe_unused]] const ssize_t written = ::write(pipe_to_thread, &message, 1);
  } else {
    ::sigaction(signal, &actions_before[IndexOfSignal(signal)], nullptr);
    ::raise(signal);  // Delivered when this handler returns.
  }
  errno = error_before;
}

bool IsOurs(const struct sigaction& action) { return action.sa_handler == OnSignal; }

}  // namespace

Result<std::unique_ptr<TerminationWatch>> TerminationWatch::Start(std::function<void()> clean_up) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot watch signals: {}", std::generic_category().message(errno))};
  }
  return std::unique_ptr<TerminationWatch>(
      new TerminationWatch(std::move(clean_up), ends[0], ends[1]));
}

TerminationWatch::TerminationWatch(std::function<void()> clean_up, int read_end, int write_end)
    : clean_up_(std::move(clean_up)),
      read_end_(read_end),
      write_end_(write_end),
      thread_(std::make_unique<Ticker>("zeus-signals", [this] { return Step(); })) {
  Arm();
}

TerminationWatch::~TerminationWatch() {
  Disarm();
  WakeToStop();
  thread_.reset();
}

void TerminationWatch::WakeToStop() {
  [[maybe_unused]] const ssize_t written = ::write(write_end_.get(), &kStop, 1);
}

void TerminationWatch::Arm() {
  if (armed_.exchange(true)) return;
  pipe_to_thread = write_end_.get();
  watching_process = ::getpid();
  struct sigaction ours {};
  ours.sa_handler = OnSignal;
  ours.sa_flags = SA_RESTART;  // The program's own calls do not notice.
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction present {};
    ::sigaction(kSignals[i], nullptr, &present);
    // A fork()ed child has inherited our handler, and what was there before it.
    if (!IsOurs(present)) actions_before[i] = present;
    if (actions_before[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &ours, nullptr);
  }
}

// Handlers that the program installed after ours stay.
void TerminationWatch::Disarm() {
  if (!armed_.exchange(false)) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction present {};
    ::sigaction(kSignals[i], nullptr, &present);
    if (IsOurs(present)) ::sigaction(kSignals[i], &actions_before[i], nullptr);
  }
}

TimePoint TerminationWatch::Step() {
  char message = kStop;
  const ssize_t received = ::read(read_end_.get(), &message, 1);
  // The ticker may not know yet that it is over: it must not wait here again.
  if (received == 1 && message == kStop) WakeToStop();
  if (received == 1 && message != kStop && armed_) {
    clean_up_();
    Disarm();
    // Sent to the process, because this thread has all signals blocked.
    ::kill(::getpid(), message);
  }
  return TimePoint();  // Call Step() again at once.
}

}  // namespace zeus
