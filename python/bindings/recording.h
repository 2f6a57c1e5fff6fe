#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/closeable.h"
#include "python/bindings/monitor.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::python {

// What a monitor recorded, with times as programs know them: seconds since 1970. It can still be
// read when the monitor is closed. Used with the GIL held; recordings are read within microseconds.
class Recording final : public Closeable {
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

  // Throws Failure when the monitor is closed.
  explicit Recording(std::shared_ptr<Monitor> monitor);
  ~Recording() override;

  std::vector<std::string> DeviceNames() const;

  // All of these throw Failure when a device cannot tell. `device` is a position in DeviceNames().
  double Present(std::size_t device, Quantity quantity) const;
  // Spans that overlap the time between; nullopt: whatever was recorded. There is none for the time
  // in which the device could not be read.
  std::vector<Span> History(std::size_t device, Quantity quantity, std::optional<double> begin,
                            std::optional<double> end);
  // When the first span began; nullopt if there is none.
  std::optional<double> Since(std::size_t device, Quantity quantity);
  Energy EnergyBetween(std::size_t device, double begin, double end);
  Energy TotalEnergy(std::size_t device) const;

  // Seconds of recorded energy and power per second of the time of day: 1 but on simulated nodes.
  double time_scale() const { return scale_; }

  // Closes the monitor and keeps what it recorded. In a fork()ed child nothing happens.
  void Stop();

 private:
  struct KeptLine {
    Quantity quantity;
    std::vector<Span> spans;
    Result<double> present;
  };
  struct Kept {
    std::string name;
    std::vector<KeptLine> lines;
  };
  struct Gap {
    TimePoint begin;
    TimePoint end;
  };

  void DoClose() override;
  void Abandon() override;
  EnergyMonitor& energy() const;
  void CheckDevice(std::size_t device) const;
  const KeptLine& Line(std::size_t device, Quantity quantity) const;
  // When the device told nothing at all.
  std::vector<Gap> SilentTimes(std::size_t device) const;
  // When its energy is not known, inside of a span of time.
  void FindDark(std::size_t device, TimePoint begin, TimePoint end, std::vector<Gap>& dark) const;
  // The same of all spans, where it lasts as long as that; sorted.
  std::vector<Gap> DarkTimes(std::size_t device, const std::vector<Timeline::Sample>& samples,
                             Seconds given_up) const;
  // The recorded power goes on where the device could not be read: without that.
  std::vector<Timeline::Sample> KnownPower(std::size_t device,
                                           const std::vector<Timeline::Sample>& samples) const;
  // Between the monitor's time and the time of day. Times stay as they were told once, unless
  // somebody sets the clock.
  void Synchronize();
  double ToUnix(TimePoint time) const {
    return (time.time_since_epoch().count() - origin_) / scale_;
  }
  TimePoint FromUnix(double time) const { return TimePoint(Seconds(time * scale_ + origin_)); }

  std::shared_ptr<Monitor> monitor_;
  std::shared_ptr<NodeMonitor> node_;  // Null when this is closed.
  bool ending_ = false;                // Nobody will read it any more.
  std::optional<std::vector<Kept>> kept_;
  double scale_ = 1;
  std::optional<double> known_origin_;
  double origin_ = 0;  // The monitor's time in 1970.
};

}  // namespace zeus::python
