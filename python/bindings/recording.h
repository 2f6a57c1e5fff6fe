#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/monitor.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::python {

// What a monitor recorded, with times as programs know them: seconds since 1970. Used with the GIL
// held; recordings are read within microseconds.
class Recording {
 public:
  using Quantity = EnergyMonitor::Quantity;

  struct Span {
    double begin;
    double end;
    double value;  // Mean over the span.
  };
  struct Energy {
    double joules;
    double sigma;  // Not a number where it is not known.
  };

  explicit Recording(std::shared_ptr<Monitor> monitor) : monitor_(std::move(monitor)) {}

  std::vector<std::string> DeviceNames() const;

  // All of these throw Failure when a device cannot tell. `device` is a position in DeviceNames().
  double Present(std::size_t device, Quantity quantity) const;
  // Spans that overlap the time between; nullopt: whatever was recorded.
  std::vector<Span> History(std::size_t device, Quantity quantity, std::optional<double> begin,
                            std::optional<double> end);
  // When the first span began; nullopt if there is none.
  std::optional<double> Since(std::size_t device, Quantity quantity);
  Energy EnergyBetween(std::size_t device, double begin, double end);
  Energy TotalEnergy(std::size_t device) const;

  // Seconds of recorded energy and power per second of the time of day: 1 but on simulated nodes.
  double time_scale() const { return kept_ ? scale_ : monitor_->time_scale(); }

  // Closes the monitor and keeps what it recorded.
  void Stop();

 private:
  struct Kept {
    std::string name;
    std::vector<std::pair<Quantity, std::vector<Span>>> lines;
  };

  EnergyMonitor& energy() const { return monitor_->energy(); }
  void CheckDevice(std::size_t device) const;
  const std::vector<Span>& KeptLine(std::size_t device, Quantity quantity) const;
  // Between the monitor's time and the time of day. Times stay as they were told once, unless
  // somebody sets the clock.
  void Synchronize();
  double ToUnix(TimePoint time) const {
    return (time.time_since_epoch().count() - origin_) / scale_;
  }
  TimePoint FromUnix(double time) const { return TimePoint(Seconds(time * scale_ + origin_)); }

  std::shared_ptr<Monitor> monitor_;
  std::optional<std::vector<Kept>> kept_;
  double scale_ = 1;
  std::optional<double> known_origin_;
  double origin_ = 0;  // The monitor's time in 1970.
};

}  // namespace zeus::python
