#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/run/report.h"
#include "zeus/base/clock.h"
#include "zeus/base/detached_call.h"
#include "zeus/base/result.h"
#include "zeus/device/node.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/process/signal_watch.h"
#include "zeus/ranks/rank_share.h"

namespace zeus::cli {

// Which devices a rank measures of those that it has not chosen by number.
enum class MeterScope {
  kVisible,    // Those that CUDA_VISIBLE_DEVICES and its relatives show to the command.
  kWholeNode,  // All of the node, so that ranks can stand in for each other.
};

struct MeterOptions {
  std::optional<std::vector<unsigned>> gpus;  // As in "gpu:1"; all when not set.
  bool cpus = true;
  MeterScope scope = MeterScope::kVisible;
  // How long the drivers may take to tell of their devices before the command starts without them.
  Seconds driver_timeout{2};
};

enum class Refinement {
  kAuto,    // Wait for the sensor where that makes the result better and costs little.
  kAlways,  // Wait for one or two updates of the slowest sensor.
  kNever,
};

// Whether to wait for the sensor after a window that has just ended.
bool WorthRefining(const Measurement& measurement);

// Measures one window after the other on this node. Whatever goes wrong is in the measurement, as
// the reason of a device without a number: measuring never prevents the work, and neither does a
// driver that takes long or hangs. Every call into a driver runs on a thread of its own and is
// waited for only so long, and not once a signal asks Zeus to end. One owner.
class RunMeter {
 public:
  // kNotFound when a GPU was asked for that is not there. A GPU that does not answer within
  // options.driver_timeout is reported as not measured. `signals` must outlive the meter.
  static Result<std::unique_ptr<RunMeter>> Open(std::shared_ptr<Clock> clock, SignalWatch& signals,
                                                const MeterOptions& options);
  ~RunMeter();
  RunMeter(const RunMeter&) = delete;
  RunMeter& operator=(const RunMeter&) = delete;

  void Begin();
  Measurement End(Refinement refinement);

  std::vector<DeviceIdentity> Devices() const;  // The devices that are measured.
  // The same devices for a meeting of ranks, with the keys of those that the command may see.
  void Describe(RankShare& share) const;
  // Sentences about measured devices that a reader must know, as that energy is the whole board's.
  const std::vector<std::string>& remarks() const { return remarks_; }
  // Limits of the GPUs that answer in time, in the order of the node.
  std::vector<Celsius> Temperatures();

  // The signal that asked Zeus to end while the meter waited for a driver.
  std::optional<int> asked_to_end() const { return asked_to_end_; }

 private:
  // The answers of the drivers at the start.
  struct Look {
    std::shared_ptr<NodeMonitor> node;  // Null when there is nothing to measure.
    std::vector<DeviceMeasurement> unmeasured;
    std::vector<std::string> remarks{};
    std::optional<std::vector<std::string>> visible{};  // Keys of GPUs; all when not set.
  };

  RunMeter(std::shared_ptr<Clock> clock, SignalWatch& signals)
      : clock_(std::move(clock)), signals_(signals), begun_(Ok()) {}

  static Result<Look> LookAround(Clock& clock, const MeterOptions& options);
  template <typename T>
  std::optional<T> WaitFor(DetachedCall<T>& call, Seconds timeout);
  Result<Measurement> EndWindow(Refinement refinement);

  // Threads that hang in a driver share both with the meter.
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<NodeMonitor> node_;  // Null when there is nothing to measure.
  SignalWatch& signals_;
  std::vector<DeviceMeasurement> unmeasured_;
  std::vector<std::string> remarks_;
  std::optional<std::vector<std::string>> visible_;
  std::optional<int> asked_to_end_;
  Status begun_;
  TimePoint begin_{};
  WallTime started_{};
};

}  // namespace zeus::cli
