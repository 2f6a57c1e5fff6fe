#pragma once

#include <deque>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/device/reading_feed.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/measurement.h"
#include "zeus/monitor/sensor_track.h"

namespace zeus {

// The troubles of a device and when they happened, to flag the windows that contain them. Bounded:
// the oldest are forgotten, but not that there were some. One owner.
class Incidents {
 public:
  // Some time after `since` and not after `time`, which does not decrease.
  void Add(TimePoint since, TimePoint time, MeasurementFlag flag);
  MeasurementFlags Between(TimePoint begin, TimePoint end) const;
  MeasurementFlags All() const { return all_; }

 private:
  struct Incident {
    TimePoint since;
    TimePoint time;
    MeasurementFlag flag;
  };
  std::deque<Incident> recent_;
  MeasurementFlags forgotten_;
  TimePoint forgotten_until_{};
  MeasurementFlags all_;
};

// Everything that is recorded about one device. Reading the hardware and storing the reading are
// two steps, so that no lock is held during a driver call. One owner.
class DeviceRecord {
 public:
  DeviceRecord(const MonitoredDevice& device, TimePoint begin, const EdgeLog& edges);

  using Visit = DeviceReading;
  // Calls the driver. Safe to call while others read this record.
  Visit Read(bool telemetry) const;
  void Take(TimePoint now, Visit visit);
  // Takes a reading of another recorder, which may have learned other things about the device than
  // this record, and may be wrong in any way.
  void TakeFollowed(TimedReading followed);

  bool DueForTelemetry(TimePoint now, Seconds interval) const;
  // When the hardware should be visited again, and from when on that is of use.
  TimePoint next_visit() const { return next_visit_.latest; }
  bool MayBeVisited(TimePoint now) const { return now >= next_visit_.earliest; }
  void ScheduleNext(TimePoint now, Seconds longest);
  // For a device that another recorder visits: there is nothing to be early for.
  void ScheduleAt(TimePoint time) { next_visit_ = {.earliest = time, .latest = time}; }

  const std::string& name() const { return device_.meter->name(); }
  bool in_total() const { return device_.in_total; }

  // Whether the curve has anything to say; else reason() tells why not.
  bool known() const { return track_.curve().started(); }
  bool rooted() const { return track_.rooted(); }
  bool has_origin() const { return origin_.has_value(); }
  // Where the energy counts from.
  Joules EnergyAtBegin() const { return Origin().energy; }
  const Error& reason() const { return reason_; }
  // The curve before this instant will not change. A device that was never read does not delay the
  // others.
  TimePoint settled_until() const;

  EnergyCurve::Point At(TimePoint time) const;
  Result<EnergyEstimate> Estimate(TimePoint begin, const EnergyCurve::Point& from, TimePoint end,
                                  const EnergyCurve::Point& to) const;
  // From the curve as far as it remembers, from the recorded power before.
  Result<EnergyEstimate> Between(TimePoint begin, TimePoint end) const;
  EnergyMonitor::Present Now(TimePoint now);
  const Timeline& Line(EnergyMonitor::Quantity quantity) const;

 private:
  enum class Mode { kUndecided, kCounter, kPower };

  // The curve at `time` as a calibrated sensor would have shown it; needs known().
  EnergyCurve::Point Corrected(TimePoint time) const;

  void TakeEnergy(TimePoint now, const Visit& visit);
  void TakePower(TimePoint now, const Result<Watts>& power);
  void TakeTelemetry(TimePoint now, GpuReading reading);
  Watts TruePower() const;            // By the last reading, calibrated.
  Watts Reported(Watts power) const;  // The value shown at this power.
  void RecordPower();
  void ShowEnergy(TimePoint now, EnergyMonitor::Present& present);
  EnergySource source() const;
  // See EnergyCurve; zero for a device with a counter, which misses nothing.
  double HiddenWorkVariance(Joules energy, Seconds time) const;
  Result<EnergyEstimate> BetweenUnseen(TimePoint begin, TimePoint end) const;
  bool Throttled() const;  // According to the latest telemetry.
  // The point at begin_: remembered, for the curve forgets.
  EnergyCurve::Point Origin() const { return origin_ ? *origin_ : At(begin_); }

  const MonitoredDevice device_;
  const TimePoint begin_;
  Mode mode_ = Mode::kUndecided;
  SensorTrack track_;
  Error reason_{ErrorCode::kUnavailable, "not read yet"};
  Incidents incidents_;
  UpdateClock::Appointment next_visit_;
  Joules shown_total_{0};
  std::optional<EnergyCurve::Point> origin_;
  std::optional<TimePoint> known_since_;
  TimePoint taken_at_ = TimePoint::min();  // Time of the last reading of another recorder.
  std::optional<TimePoint> last_telemetry_;
  std::optional<GpuReading> telemetry_;

  TimePoint power_recorded_until_{};
  Timeline power_line_;
  Timeline temperature_line_;
  Timeline clock_line_;
  Timeline limit_line_;
  Timeline utilization_line_;
  Timeline average_power_line_;
  Timeline memory_power_line_;
};

}  // namespace zeus
