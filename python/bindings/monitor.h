#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/closeable.h"
#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"
#include "zeus/device/node.h"
#include "zeus/export/window_log.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::python {

namespace py = pybind11;

// The devices that are visible to this process. Each device keeps the whole machine alive. Used
// with the GIL held.
class Machine : public std::enable_shared_from_this<Machine> {
 public:
  // Discovers the devices without the GIL, which may block. First restores what killed programs
  // left on devices. Throws Failure.
  static std::shared_ptr<Machine> Open(const std::string& sysfs, const std::string& procfs,
                                       const std::string& dev);

  const Node& node() const { return node_; }
  std::vector<std::shared_ptr<Gpu>> gpus() const { return Share(node_.gpus); }
  std::vector<std::shared_ptr<CpuPackage>> cpus() const { return Share(node_.cpus); }
  std::vector<std::shared_ptr<PowerRail>> rails() const { return Share(node_.rails); }

 private:
  Machine() = default;

  template <class T>
  std::vector<std::shared_ptr<T>> Share(const std::vector<std::unique_ptr<T>>& devices) const {
    std::vector<std::shared_ptr<T>> shared;
    for (const auto& device : devices) shared.emplace_back(shared_from_this(), device.get());
    return shared;
  }

  SystemClock clock_;
  Node node_;
};

void BindGpu(py::module_& module);

// Waits until the GPUs have finished the work of a framework that the program uses: torch, JAX or
// CuPy. It imports none itself, but notices one that the program imports later.
// zeus.utils.framework.synchronizer() decides how to wait.
class Synchronizer {
 public:
  // `framework` is "torch", "jax" or "cupy"; empty: any that is imported.
  Synchronizer(const std::string& framework, std::vector<int> gpus);

  // Returns whether there was work to wait for, judged by the time it took.
  bool operator()(const Clock& clock) {
    if (!function_ && names_.empty()) return false;
    const TimePoint called = clock.Now();
    (*this)();
    return WindowEndAfter(clock.Now() - called) == WindowEnd::kWorkEnded;
  }
  void operator()() {
    if (function_) {
      Call();
    } else if (!names_.empty()) {
      LookForFramework();
    }
  }

 private:
  // No C++ object may own a reference meanwhile: the end of the interpreter may end a daemon thread
  // inside the call.
  void Call() const {
    PyObject* result = PyObject_CallNoArgs(function_.ptr());
    if (result == nullptr) throw py::error_already_set();
    Py_DECREF(result);
  }
  void LookForFramework();

  py::dict modules_;            // sys.modules
  std::vector<py::str> names_;  // Frameworks that may still be imported.
  std::vector<int> gpus_;
  py::object function_;
};

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
