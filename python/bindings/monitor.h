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

// Finished windows as lines of a file. Thread-safe.
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

// What Python calls a monitor: the devices of a node, the recorder thread, and the windows. Used
// with the GIL held; who lets go of it meanwhile keeps what recording() returned.
class Monitor final : public Closeable {
 public:
  struct Options {
    std::optional<std::vector<unsigned>> gpus{};
    std::optional<std::vector<unsigned>> cpus{};  // Positions in Node::cpus; none: no CPU.
    bool share = true;
    std::string log_file{};  // Finished windows are written there; empty: nowhere.
    WindowColumns log_columns = WindowColumns::kReference;
    IfLogExists if_log_exists = IfLogExists::kContinue;
    std::string framework{};  // See Synchronizer.
    Seconds telemetry_interval{1.0};
  };

  // Throws Failure. Blocks, without the GIL.
  static std::shared_ptr<Monitor> Open(const Options& options);
  ~Monitor() override { Close(); }

  // Throw Failure when it is closed, and in a fork()ed child.
  NodeMonitor& node() const;
  EnergyMonitor& energy() const { return node().monitor(); }
  std::shared_ptr<NodeMonitor> recording() const;

  // Seconds of its time per second of the system's.
  double time_scale() const;
  // What was looked for and is not there.
  const std::vector<Absence>& absent() const { return absent_; }

  Synchronizer& synchronizer() { return synchronizer_; }
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
