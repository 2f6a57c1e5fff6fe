#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "zeus/monitor/energy_monitor.h"
#include "zeus/optimizer/power_limit/slice_meter.h"

namespace zeus {

// Measures slices as windows of a monitor. They are called as those of the reference
// implementation, "__GlobalPowerLimitOptimizer_300", so that logs of both read alike.
class MonitorSliceMeter final : public SliceMeter {
 public:
  // `devices` are positions in the monitor: the energy of a slice is their sum. The monitor must
  // outlive this object, and somebody must call its Step().
  MonitorSliceMeter(EnergyMonitor& monitor, std::vector<std::size_t> devices)
      : monitor_(monitor), devices_(std::move(devices)) {}
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
  std::string open_;  // Name of the open window; empty if there is none.
};

}  // namespace zeus
