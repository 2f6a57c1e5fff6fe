#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "zeus/monitor/energy_monitor.h"
#include "zeus/optimizer/power_limit/slice_meter.h"

namespace zeus {

// "__GlobalPowerLimitOptimizer_300" for "300 W": as those of the reference implementation, so that
// logs of both read alike.
std::string SliceWindowName(const std::string& label);

// Measures slices as windows of a monitor.
class MonitorSliceMeter final : public SliceMeter {
 public:
  // `devices` are positions in the monitor: the energy of a slice is their sum. `ended` is called
  // with every slice. The monitor must outlive this object, and its Step() must be called by a
  // recorder thread or the owner.
  MonitorSliceMeter(EnergyMonitor& monitor, std::vector<std::size_t> devices,
                    std::function<void(const Measurement&)> ended = {})
      : monitor_(monitor), devices_(std::move(devices)), ended_(std::move(ended)) {}
  ~MonitorSliceMeter() override { Cancel(); }

  Status Begin(const std::string& label) override;
  Result<SliceReading> Peek() override;
  Result<Ticket> End() override;
  void Cancel() override;
  Result<SliceReading> Read(Ticket ticket) override;

 private:
  Result<SliceReading> Sum(const Measurement& measurement) const;

  EnergyMonitor& monitor_;
  const std::vector<std::size_t> devices_;
  const std::function<void(const Measurement&)> ended_;
  std::string open_;  // Name of the open window; empty if there is none.
};

}  // namespace zeus
