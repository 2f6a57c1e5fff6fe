#include "zeus/daemon/holder_watch.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/base/ticker.h"

namespace zeus::daemon {
namespace {

constexpr std::uint64_t kWakeNumber = 0;
constexpr std::size_t kEventsAtOnce = 64;

Error SystemError(const char* doing, int reason) {
  return {ErrorCode::kUnavailable,
          fmt::format("{}: {}", doing, LowerCase(std::generic_category().message(reason)))};
}

}  // namespace

// A process is known by a number that is never used again: an event that epoll_wait() returned for
// a descriptor that was closed and opened again meanwhile means nothing.
class HolderWatch::State {
 public:
  State(Ended ended, int epoll, int wake) : ended_(std::move(ended)), epoll_(epoll), wake_(wake) {}

  Status Start() {
    if (!epoll_.valid() || !wake_.valid()) return SystemError("watch processes", errno);
    ::epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeNumber}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
      return SystemError("watch processes", errno);
    try {
      thread_.emplace("zeus holders", [this] { return WaitAndReport(); });
    } catch (const std::system_error&) {
      return NoThreadError().While("watch processes");
    }
    return Ok();
  }

  ~State() {
    stopping_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    thread_.reset();
  }

  Status Add(const std::string& key, std::shared_ptr<FileDescriptor> pidfd) {
    if (!pidfd || !pidfd->valid())
      return Error{ErrorCode::kInvalidArgument, "there is no descriptor of the process"};
    const std::lock_guard lock(mutex_);
    RemoveLocked(key);
    const auto known = numbers_.find(pidfd->get());
    if (known != numbers_.end()) {
      processes_.at(known->second).keys.insert(key);
      process_of_.emplace(key, known->second);
      return Ok();
    }
    const std::uint64_t number = ++last_number_;
    ::epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd->get(), &event) != 0)
      return SystemError("watch a process", errno);
    numbers_.emplace(pidfd->get(), number);
    process_of_.emplace(key, number);
    processes_.emplace(number, Process{.pidfd = std::move(pidfd), .keys = {key}});
    return Ok();
  }

  void Remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    RemoveLocked(key);
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return process_of_.size();
  }

 private:
  struct Process {
    std::shared_ptr<FileDescriptor> pidfd;
    std::set<std::string> keys;
  };

  void RemoveLocked(const std::string& key) {
    const auto found = process_of_.find(key);
    if (found == process_of_.end()) return;
    const auto process = processes_.find(found->second);
    process_of_.erase(found);
    process->second.keys.erase(key);
    if (process->second.keys.empty()) Forget(process);
  }

  void Forget(std::map<std::uint64_t, Process>::iterator process) {
    const int descriptor = process->second.pidfd->get();
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
    numbers_.erase(descriptor);
    processes_.erase(process);
  }

  TimePoint WaitAndReport() {
    if (stopping_) return Ticker::kWhenWoken;
    std::array<::epoll_event, kEventsAtOnce> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, -1);
    for (int i = 0; i < count && !stopping_; ++i) {
      const std::uint64_t number = events.at(static_cast<std::size_t>(i)).data.u64;
      while (number != kWakeNumber && !stopping_) {
        const std::optional<std::string> key = NextKeyOf(number);
        if (!key) break;
        ended_(*key);
      }
    }
    return TimePoint();  // At once.
  }

  // Takes one key at a time, so that a key that was removed meanwhile is not reported.
  std::optional<std::string> NextKeyOf(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto process = processes_.find(number);
    if (process == processes_.end()) return std::nullopt;
    std::string key = *process->second.keys.begin();
    RemoveLocked(key);
    return key;
  }

  const Ended ended_;
  const FileDescriptor epoll_;
  const FileDescriptor wake_;
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  std::uint64_t last_number_ = kWakeNumber;          // Guarded by mutex_.
  std::map<std::uint64_t, Process> processes_;       // Guarded by mutex_.
  std::map<int, std::uint64_t> numbers_;             // By descriptor; guarded by mutex_.
  std::map<std::string, std::uint64_t> process_of_;  // By key; guarded by mutex_.

  std::optional<Ticker> thread_;  // The last member: it uses the others.
};

Result<std::unique_ptr<HolderWatch>> HolderWatch::Start(Ended ended) {
  auto state = std::make_unique<State>(std::move(ended), ::epoll_create1(EPOLL_CLOEXEC),
                                       ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  ZEUS_RETURN_IF_ERROR(state->Start());
  return std::unique_ptr<HolderWatch>(new HolderWatch(std::move(state)));
}

HolderWatch::HolderWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
HolderWatch::~HolderWatch() = default;

Status HolderWatch::Add(const std::string& key, std::shared_ptr<FileDescriptor> pidfd) {
  return state_->Add(key, std::move(pidfd));
}

void HolderWatch::Remove(const std::string& key) { state_->Remove(key); }
std::size_t HolderWatch::size() const { return state_->size(); }

Result<std::shared_ptr<FileDescriptor>> OpenPidfd(const ProcessIdentity& process) {
  const auto gone = [&process] {
    return Error{ErrorCode::kNotFound, fmt::format("process {} has ended", process.pid)};
  };
  ZEUS_TRY(const ProcessIdentity self, ThisProcess());
  if (process.pid_namespace != self.pid_namespace)
    return Error{ErrorCode::kNotFound,
                 fmt::format("process {} is in another pid namespace", process.pid)};
  if (process.pid <= 0) return gone();
  auto pidfd = std::make_shared<FileDescriptor>(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0)));
  if (!pidfd->valid()) {
    const int reason = errno;
    if (reason == ESRCH || reason == EINVAL) return gone();
    return SystemError("open a descriptor of a process", reason);
  }
  // The descriptor keeps the process it was opened for: if the number belongs to the right one now,
  // it did when the descriptor was opened.
  if (!IsRunning(process)) return gone();
  return pidfd;
}

}  // namespace zeus::daemon
