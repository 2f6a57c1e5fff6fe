#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/energy_meter.h"
#include "zeus/device/gpu.h"
#include "zeus/device/reading_feed.h"
#include "zeus/monitor/measurement.h"
#include "zeus/monitor/sensor_profile.h"
#include "zeus/monitor/sharing/activity_board.h"
#include "zeus/monitor/timeline.h"

namespace zeus {

// A device to record. The meter must outlive the monitor.
struct MonitoredDevice {
  EnergyMeter* meter;
  Gpu* gpu = nullptr;  // The same device where it is a GPU: temperature, clocks, limit.
  SensorProfile sensor{};
  bool in_total = true;  // Copied to DeviceMeasurement::in_total.
  // The device draws no more than this. nullopt: the enforced power limit of `gpu`, if it tells.
  std::optional<Watts> highest_power{};
};

// The caller's knowledge about an edge of a window.
enum class WindowEnd {
  kPlain,
  // The caller waited for the devices' work, and it ended just now: what was used in the last
  // update of the sensor was used before the edge, not after it.
  kWorkEnded,
};
// After a caller waited for the devices: one that has nothing to do answers at once.
constexpr WindowEnd WindowEndAfter(Seconds wait) {
  return wait > Seconds(200e-6) ? WindowEnd::kWorkEnded : WindowEnd::kPlain;
}

enum class IfOpen { kRefuse, kRestart };
enum class EdgeReading {
  kRecorded,     // Only take the time: the recorder saw, or will see, what the sensor showed.
  kSynchronous,  // Read the driver now. For monitors without a recorder thread.
};

struct WindowOptions {
  IfOpen if_open = IfOpen::kRefuse;
  EdgeReading edges = EdgeReading::kRecorded;
  // Call Options::synchronize before the edges.
  bool synchronize = true;
  // The caller's knowledge about the begin, where it has waited for the devices itself.
  WindowEnd at_begin = WindowEnd::kPlain;
  // Windows of one lane nest: the innermost gets the energy. Lanes share it by weight.
  // nullopt: one lane per thread.
  std::optional<std::uint64_t> lane{};
  double weight = 1.0;  // 0, or between 1e-6 and 1e6.
};

// Measures the energy of named windows: nested, overlapping, from any thread.
//
// The hot path takes a time stamp and a lock; the hardware is read by Step(), which the thread of a
// NodeMonitor or a test calls. Devices that another process reads (EnergyMeter::Follow()) are never
// read here: the edges of windows and Step() take over what that process has read meanwhile, so
// that windows on them need no thread. Step() keeps for every device a curve of cumulative energy
// over time, so energies of windows that partition a period add up to the energy of the period.
//
// A window's result comes twice: at once from EndWindow(), as well as is known then, and refined
// once the sensor showed what happened at its end, one to three updates later.
// Thread-safe.
class EnergyMonitor {
 public:
  struct Options {
    // Called before the edges of windows: wait until the GPU has done what was asked of it. A call
    // that took time says that work ended at the edge.
    std::function<void()> synchronize{};
    // Devices are read at least this often, and more often where the sensor updates faster.
    Seconds longest_interval{0.05};
    // Temperature, clocks, utilisation and limits of GPUs.
    Seconds telemetry_interval{1.0};
    // Called with every reading that Step() takes of a device, by the name of the device, before it
    // is recorded; on the thread that calls Step(), and for the first time by the constructor.
    std::function<void(const std::string& device, TimePoint, const DeviceReading&)> recorded{};
    // Board through which processes share energy; null when this process measures alone. It belongs
    // to this monitor only.
    std::unique_ptr<ActivityBoard> board{};
    // Finished windows whose refined result has not been asked for, at most; older ones are lost.
    std::size_t kept_results = 4096;
    // Windows whose edges the sensors have yet to show, at most. Beyond it, that is with a hundred
    // thousand windows per second, windows have an immediate result only.
    std::size_t unsettled_windows = 65536;
  };

  EnergyMonitor(Clock& clock, std::vector<MonitoredDevice> devices, Options options);
  EnergyMonitor(Clock& clock, std::vector<MonitoredDevice> devices)
      : EnergyMonitor(clock, std::move(devices), Options()) {}
  ~EnergyMonitor();
  EnergyMonitor(const EnergyMonitor&) = delete;
  EnergyMonitor& operator=(const EnergyMonitor&) = delete;

  // kInvalidArgument if a window of that name is open, unless it is to be restarted.
  Result<WindowId> BeginWindow(std::string_view name, const WindowOptions& options = {});

  // kNotFound if no window of that name is open. Energies are as well as known at this moment.
  Result<Measurement> EndWindow(std::string_view name, WindowEnd end = WindowEnd::kPlain);

  // Energy that an open window has used so far, as well as known at this moment. The window stays
  // open.
  Result<Measurement> PeekWindow(std::string_view name) const;

  // Forgets an open window. No window gets its energy.
  Status CancelWindow(std::string_view name);
  void CancelAllWindows();
  // The names of the windows that are open, in order of their names.
  std::vector<std::string> OpenWindows() const;

  // The final result of a window that was ended. kUnavailable until the sensor has shown what
  // happened at its end; kNotFound when the id is unknown or its result was given or dropped.
  Result<Measurement> RefinedResult(WindowId id);
  // Waits, and steps where no recorder thread does, until the sensors have shown the end of the
  // window or `timeout` has passed; then returns the best there is (stage kImmediate).
  Result<Measurement> Refine(WindowId id, Seconds timeout = Seconds(2));

  // Called with each refined result, on the thread that calls Step() or, where devices are
  // followed, begins or ends a window.
  using Listener = std::function<void(const Measurement&)>;
  void OnRefined(Listener listener);

  // Reads the devices that are due and settles what can be settled. Returns when to come again.
  // One thread at a time; others wait.
  TimePoint Step();

  // Access to the recording. `device` counts the devices given at construction.
  std::size_t device_count() const;
  const std::string& device_name(std::size_t device) const;
  // Whether another process reads the device.
  bool follows(std::size_t device) const;
  bool device_in_total(std::size_t device) const;  // As in DeviceMeasurement.

  // The present state of a device, from the recording: no driver call.
  struct Present {
    Result<Joules> total;  // Since recording began; never decreases.
    Joules total_sigma;
    Result<Watts> power;  // Over the last update.
    Watts power_sigma;
    Result<Celsius> temperature;
    Result<Utilization> utilization;
    Result<Hertz> graphics_clock;
    Result<Watts> requested_limit;
    Result<Watts> enforced_limit;
    Result<Watts> instant_power;
    Result<Watts> average_power;
    Result<Watts> memory_power;
    Result<ThrottleReasons> throttle;
    EnergySource source;
    Seconds update_period;
    MeasurementFlags flags;  // Flags of the whole recording.
  };
  Present Now(std::size_t device) const;

  // Energy that no window claimed, since recording began, as far as it is settled: see
  // `attributed`.
  struct Ledger {
    Joules device;        // Settled energy of the device.
    Joules unattributed;  // Part claimed by no window of this process and by no other process.
    Joules others;        // Part of the other processes.
  };
  Ledger Accounts(std::size_t device) const;

  // Energy of a device between two moments of the recording, neither of which may lie in the
  // future, in the form of a window's result. The distant past is recorded more coarsely.
  Result<EnergyEstimate> EnergyBetween(std::size_t device, TimePoint begin, TimePoint end) const;
  // The recording of a device is final up to this moment: energies between earlier moments never
  // change any more. Later energies are extrapolated. The distant past while nothing is known.
  TimePoint SettledUntil(std::size_t device) const;

  enum class Quantity {
    kPower,
    kTemperature,
    kGraphicsClock,
    kPowerLimit,
    kUtilization,
    kAveragePower,  // As the device averages it.
    kMemoryPower,
  };
  std::vector<Timeline::Sample> History(std::size_t device, Quantity quantity, TimePoint begin,
                                        TimePoint end) const;

  // Number of edges of windows, since recording began, right before which a wait for work ended.
  std::size_t edges_after_work() const;

  Clock& clock() { return clock_; }

 private:
  class State;
  Clock& clock_;
  std::unique_ptr<State> state_;
};

// Begins a window and ends it when the scope is left, by return or by exception.
class ScopedWindow {
 public:
  using Sink = std::function<void(const Measurement&)>;

  // `sink` receives the immediate result; errors of BeginWindow are in status().
  ScopedWindow(EnergyMonitor& monitor, std::string name, Sink sink,
               const WindowOptions& options = {});
  ~ScopedWindow();
  ScopedWindow(const ScopedWindow&) = delete;
  ScopedWindow& operator=(const ScopedWindow&) = delete;

  const Status& status() const { return status_; }
  // Ends it now. kNotFound when it has been ended already.
  Result<Measurement> End();

 private:
  EnergyMonitor& monitor_;
  std::string name_;
  Sink sink_;
  Status status_;
  bool open_;
};

}  // namespace zeus
