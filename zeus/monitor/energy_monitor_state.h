#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeus/monitor/device_record.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/lane_weights.h"
#include "zeus/monitor/settlement.h"

namespace zeus {

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const {
    return std::hash<std::string_view>()(name);
  }
};

// What an EnergyMonitor knows. Windows are in energy_monitor_windows.cc, recording and settling in
// energy_monitor_recording.cc.
class EnergyMonitor::State {
 public:
  State(Clock& clock, const std::vector<MonitoredDevice>& devices, Options options);
  ~State();

  Result<WindowId> Begin(std::string_view name, const WindowOptions& window);
  Result<Measurement> End(std::string_view name, WindowEnd end);
  Result<Measurement> Peek(std::string_view name) const;
  Status Cancel(std::string_view name);
  void CancelAll();
  Result<Measurement> Refined(WindowId id);
  // The refined result, or the immediate one of a window that is not settled yet.
  Result<Measurement> BestSoFar(WindowId id);
  // With what was settled since the last edge of a window, too. Under the lock.
  AttributionLedger LedgerNow(std::size_t device) const;
  TimePoint Step();
  void AddListener(Listener listener);
  void ReadNow();

  // Guards everything below it; never held during a driver call or a call to a listener.
  mutable std::mutex mutex_;
  Clock& clock_;
  const Options options_;
  EdgeLog edges_;
  std::vector<DeviceRecord> records_;
  Settlement settlement_;

 private:
  using Open = std::unordered_map<std::string, std::shared_ptr<Window>, NameHash, std::equal_to<>>;

  // Waits for the devices' work as the options ask for; whether there was anything to wait for.
  bool Synchronize() const;
  void VisitDevices(TimePoint now, bool all);
  void ShareWithOthers(TimePoint now);
  std::vector<Measurement> Settle();
  void SetOrigins();
  TimePoint SettledUntil() const;
  void Announce(TimePoint time, const Window& window, Settlement::EdgeKind kind);
  void Forget(Open::iterator window, TimePoint now);
  Measurement Describe(const Window& window, Measurement::Stage stage) const;
  Measurement ImmediateResult(const Window& window) const;
  Measurement FinalResult(const Window& window, const std::vector<EnergyCurve::Point>& ends) const;
  void Keep(Measurement result);
  WallTime WallAt(TimePoint time) const;

  Open open_;
  std::uint64_t last_id_ = 0;
  std::vector<bool> origin_known_;
  std::unordered_map<std::uint64_t, Measurement> results_;
  std::deque<WindowId> results_in_order_;
  std::vector<Listener> listeners_;
  // What the wall clock said at the last step: labels need no system call.
  TimePoint wall_read_at_{};
  WallTime wall_{};
  // Edges that other processes have not been told about, and the weight that they know.
  LaneWeights own_weights_;  // Only Step() uses it.
  std::vector<LaneWeights::Edge> untold_;
  TimePoint others_known_until_{};

  // One step at a time. Taken before mutex_; recursive because listeners may use the monitor.
  std::recursive_mutex step_mutex_;
};

}  // namespace zeus
