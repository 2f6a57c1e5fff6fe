#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus {

// Time and energy of a stretch of training on the devices of this process.
struct SliceReading {
  Seconds time{0};
  Joules energy{0};
  Joules sigma{0};         // Without shared_sigma.
  Joules shared_sigma{0};  // Common to all slices: gain of the sensors.
  bool final = true;       // False while the sensors have yet to show what happened at its end.
};

// Measures slices one after the other: all that the optimiser needs of a monitor. One owner.
class SliceMeter {
 public:
  enum class Ticket : std::uint64_t {};

  virtual ~SliceMeter() = default;

  // `label` is the setting under test, as text.
  virtual Status Begin(const std::string& label) = 0;
  // Returns the reading of the open slice so far.
  virtual Result<SliceReading> Peek() = 0;
  virtual Result<Ticket> End() = 0;
  virtual void Cancel() = 0;

  // Returns the reading of an ended slice, as well as it is known by now. May be called until it is
  // final.
  virtual Result<SliceReading> Read(Ticket ticket) = 0;
};

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
