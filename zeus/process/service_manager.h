#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

// A service's conversation with the program that started it, as systemd and others understand it:
// sd_notify(3), sd_listen_fds(3) and sd_watchdog_enabled(3), without their library.
namespace zeus {

// The variables through which the service manager speaks. Tests give their own.
struct ServiceEnvironment {
  Environment read = ProcessEnvironment();
  // Removes a variable, so that programs which this process starts do not answer in its name. Not
  // while other threads read the environment: call the functions below before the first thread.
  std::function<void(const char* variable)> remove = RemoveVariable;
  std::optional<::pid_t> process{};  // nullopt: this one.
  int first_descriptor = 3;          // SD_LISTEN_FDS_START

  static void RemoveVariable(const char* variable);
};

// A listening socket that the service manager made.
struct ActivatedSocket {
  std::string name{};  // FileDescriptorName= of its unit; "unknown" where the manager names none.
  std::shared_ptr<FileDescriptor> descriptor{};
};

// The sockets that were passed to this process, in the manager's order; none when it was started by
// other means or when they were meant for another process. They become close-on-exec. LISTEN_FDS
// and its relatives are removed in any case. kInvalidArgument when the variables contradict each
// other.
Result<std::vector<ActivatedSocket>> TakeActivatedSockets(
    const ServiceEnvironment& environment = {});

// Reports the state of this service to its manager. Without a manager every report succeeds and
// does nothing. No report waits longer than a second. Thread-safe.
class ServiceNotifier {
 public:
  // Reads and removes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  explicit ServiceNotifier(const ServiceEnvironment& environment = {});

  bool has_manager() const { return !address_.empty(); }
  // The manager restarts the service when no Watchdog() came for this long; report at least twice
  // as often. nullopt when it does not watch.
  std::optional<Seconds> watchdog_timeout() const { return watchdog_timeout_; }

  // The service answers from now on. Also ends Reloading(). `status` is a sentence for people.
  Status Ready(std::string_view status = {}) const;
  Status Report(std::string_view status) const;
  Status Watchdog() const;
  Status Reloading(TimePoint now) const;
  Status Stopping() const;

 private:
  Status Send(const std::string& state) const;

  std::string address_{};  // The path, or '@' and a name of the abstract space; empty: no manager.
  std::optional<Seconds> watchdog_timeout_{};
};

}  // namespace zeus
