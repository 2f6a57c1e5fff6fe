#include "zeus/optimizer/power_limit/slice_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zeus {

std::string SliceWindowName(const std::string& label) {
  return "__GlobalPowerLimitOptimizer_" + label.substr(0, label.find(' '));
}

Status MonitorSliceMeter::Begin(const std::string& label) {
  open_ = SliceWindowName(label);
  const auto begun = monitor_.BeginWindow(open_, {.if_open = IfOpen::kRestart});
  if (begun.ok()) return Ok();
  open_.clear();
  return begun.error();
}

Result<SliceReading> MonitorSliceMeter::Peek() {
  ZEUS_TRY(const Measurement so_far, monitor_.PeekWindow(open_));
  return Sum(so_far);
}

Result<SliceMeter::Ticket> MonitorSliceMeter::End() {
  ZEUS_TRY(const Measurement measured, monitor_.EndWindow(std::exchange(open_, {})));
  if (ended_) ended_(measured);
  return Ticket(static_cast<std::uint64_t>(measured.id));
}

void MonitorSliceMeter::Cancel() {
  if (open_.empty()) return;
  // The window may have been closed elsewhere; nothing is lost then.
  (void)monitor_.CancelWindow(std::exchange(open_, {}));
}

Result<SliceReading> MonitorSliceMeter::Read(Ticket ticket) {
  ZEUS_TRY(const Measurement measured,
           monitor_.Refine(WindowId(static_cast<std::uint64_t>(ticket)), Seconds(0)));
  return Sum(measured);
}

Result<SliceReading> MonitorSliceMeter::Sum(const Measurement& measurement) const {
  SliceReading sum{.time = measurement.time,
                   .final = measurement.stage == Measurement::Stage::kRefined};
  double variance = 0;
  double shared_variance = 0;
  for (const std::size_t device : devices_) {
    const DeviceMeasurement& measured = measurement.devices[device];
    if (!measured.energy.ok())
      return measured.energy.error().While("measure the energy of " + measured.device);
    const EnergyEstimate& estimate = measured.energy.value();
    const double shared = estimate.shared_sigma.value() * estimate.shared_sigma.value();
    sum.energy += estimate.energy;
    variance += std::max(estimate.sigma.value() * estimate.sigma.value() - shared, 0.0);
    shared_variance += shared;
  }
  sum.sigma = Joules(std::sqrt(variance));
  sum.shared_sigma = Joules(std::sqrt(shared_variance));
  return sum;
}

}  // namespace zeus
