#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/closeable.h"
#include "python/bindings/synchronizer.h"
#include "zeus/base/clock.h"
#include "zeus/base/scaled_clock.h"
#include "zeus/base/ticker.h"
#include "zeus/export/window_log.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::python {

// A log of finished windows, one per line of a file. Thread-safe.
class SharedLog {
 public:
  explicit SharedLog(std::unique_ptr<WindowLog> log) : log_(std::move(log)) {}
  Status Write(const Measurement& measurement) {
    const std::lock_guard lock(mutex_);
    return log_->Write(measurement);
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<WindowLog> log_;
};

// The object behind Python's monitor: the devices of a node, the recorder thread, and the windows.
// Used with the GIL held; callers that release it must keep the result of recording().
class Monitor final : public Closeable {
 public:
  struct Options {
    std::optional<std::vector<unsigned>> gpus{};
    std::optional<std::vector<unsigned>> cpus{};  // Indices into Node::cpus; an empty list: no CPU.
    bool share = true;
    std::string log_file{};  // Path of the log of finished windows; empty: none.
    WindowColumns log_columns = WindowColumns::kReference;
    IfLogExists if_log_exists = IfLogExists::kContinue;
    std::string framework{};  // See Synchronizer.
    Seconds telemetry_interval{1.0};
  };

  // Throws Failure. Releases the GIL while it blocks.
  static std::shared_ptr<Monitor> Open(const Options& options);
  ~Monitor() override { Close(); }

  // These throw Failure after closing and in a forked child.
  NodeMonitor& node() const;
  EnergyMonitor& energy() const { return node().monitor(); }
  std::shared_ptr<NodeMonitor> recording() const;

  // Seconds of its time per second of the system's.
  double time_scale() const;
  // The devices that were looked for but are absent.
  const std::vector<Absence>& absent() const { return absent_; }

  Synchronizer& synchronizer() { return synchronizer_; }
  // Waits for the framework's work. Work that had to be waited for ended just now.
  WindowEnd Synchronize() {
    return synchronizer_(energy().clock()) ? WindowEnd::kWorkEnded : WindowEnd::kPlain;
  }
  // Null if nothing is logged.
  const std::shared_ptr<SharedLog>& log() const { return log_; }
  Status Log(const Measurement& measurement);

 private:
  struct Recording;

  explicit Monitor(Synchronizer synchronizer) : synchronizer_(std::move(synchronizer)) {}
  void DoClose() override;
  void Abandon() override;

  Synchronizer synchronizer_;
  std::vector<Absence> absent_;
  std::shared_ptr<Recording> recording_;
  std::shared_ptr<SharedLog> log_;
};

}  // namespace zeus::python
