#include "zeus/monitor/device_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace zeus {

void Incidents::Add(TimePoint since, TimePoint time, MeasurementFlag flag) {
  all_.Set(flag);
  // Trouble that goes on and on is one incident, so that it does not push out the others.
  if (!recent_.empty() && recent_.back().flag == flag && recent_.back().time >= since) {
    recent_.back().time = time;
    return;
  }
  if (recent_.size() == 512) {
    forgotten_.Set(recent_.front().flag);
    forgotten_until_ = recent_.front().time;
    recent_.pop_front();
  }
  recent_.push_back({.since = since, .time = time, .flag = flag});
}

MeasurementFlags Incidents::Between(TimePoint begin, TimePoint end) const {
  MeasurementFlags flags;
  if (!forgotten_.empty() && begin <= forgotten_until_) flags = forgotten_;
  for (auto incident = recent_.rbegin(); incident != recent_.rend(); ++incident) {
    if (incident->time < begin) break;
    if (incident->since <= end) flags.Set(incident->flag);
  }
  return flags;
}

namespace {

using namespace std::chrono_literals;

// Part of the energy of gaps by which a load that looks steady may differ from what is seen of it.
constexpr double kUnseenSwing = 0.002;

// Part of the errors of changes inside gaps that does not average out: a load with a rhythm of its
// own meets the sensor in few phases only, again and again.
constexpr double kRhythm = 0.05;

// A drifting load errs in one direction for about as many updates as the variability remembers, and
// then in the other.
constexpr double kDriftUpdates = 18;

// Part of the energy of a window that is not worth a flag.
constexpr double kNegligible = 0.01;

double Squared(double value) { return value * value; }

template <class T>
Result<T> Missing(const char* what) {
  return Error{ErrorCode::kNotSupported, std::string(what) + ": this device does not tell"};
}

// Energy that the sensor may miss of a load that drifts against its updates.
Joules DriftSigma(const EnergyCurve::Point& from, const EnergyCurve::Point& to, Seconds gap) {
  const Seconds time = to.drifting - from.drifting;
  if (time <= Seconds(0)) return Joules(0);
  return 1.3 * (to.drift - from.drift) * std::min(1.0, kDriftUpdates * gap / time);
}

// One reading that is no number would spoil the curve for good.
void RefuseNonsense(DeviceRecord::Visit& visit) {
  const Error error{ErrorCode::kUnavailable,
                    "the driver answered with something that is no number"};
  if (visit.energy && visit.energy->ok() && !std::isfinite(visit.energy->value().total.value()))
    visit.energy = error;
  if (visit.power && visit.power->ok() && !std::isfinite(visit.power->value().value()))
    visit.power = error;
}

bool SlowedDown(const ThrottleReasons& reasons) { return reasons.thermal || reasons.other; }

}  // namespace

DeviceRecord::DeviceRecord(const MonitoredDevice& device, TimePoint begin, const EdgeLog& edges)
    : device_(device),
      begin_(begin),
      track_(device.sensor, begin, edges),
      next_visit_{begin, begin} {
  if (device.highest_power) track_.SetCeiling(Reported(*device.highest_power));
}

DeviceRecord::Visit DeviceRecord::Read(bool telemetry) const {
  Visit visit;
  if (telemetry && device_.gpu != nullptr) visit.telemetry = device_.gpu->Read();
  if (mode_ != Mode::kPower) visit.energy = device_.meter->Energy();
  const bool no_counter = visit.energy && !visit.energy->ok();
  // A counter that has not moved yet says nothing about the power; one that stands still neither.
  const bool ask_power = mode_ == Mode::kPower || no_counter || mode_ == Mode::kUndecided ||
                         incidents_.All().Has(MeasurementFlag::kStaleCounter);
  if (ask_power) visit.power = device_.meter->Power();
  return visit;
}

void DeviceRecord::Take(TimePoint now, Visit visit) {
  RefuseNonsense(visit);
  if (visit.energy && mode_ == Mode::kUndecided) {
    if (visit.energy->ok()) mode_ = Mode::kCounter;
    if (!visit.energy->ok() && visit.energy->error().code == ErrorCode::kNotSupported)
      mode_ = Mode::kPower;
  }
  if (mode_ == Mode::kPower) {
    TakePower(now, *visit.power);
  } else {
    TakeEnergy(now, visit);
  }
  if (known() && !known_since_) known_since_ = now;
  if (known() && !origin_ && settled_until() >= begin_) origin_ = At(begin_);
  RecordPower();
  if (visit.telemetry) TakeTelemetry(now, *std::move(visit.telemetry));
}

void DeviceRecord::TakeFollowed(TimedReading followed) {
  Visit& visit = followed.reading;
  if (!(followed.time >= taken_at_)) return;  // Not a number, or out of order.
  // A power reading says nothing about the time of readings that were lost; a counter went on.
  if (followed.after_gap && mode_ == Mode::kPower && known()) {
    track_.ObserveFailure(taken_at_);
    track_.ObserveFailure(followed.time);
  }
  taken_at_ = followed.time;
  // A recorder that knows that there is no counter asks for the power alone.
  if (!visit.energy && mode_ != Mode::kPower) visit.energy = Missing<EnergyReading>("read energy");
  const bool power_needed = visit.energy && !visit.energy->ok();
  if (!visit.power && (mode_ == Mode::kPower || power_needed))
    visit.power = Missing<Watts>("read power");
  Take(followed.time, std::move(visit));
}

void DeviceRecord::TakeEnergy(TimePoint now, const Visit& visit) {
  std::optional<Watts> power;
  if (visit.power && visit.power->ok()) power = visit.power->value();
  if (!visit.energy->ok()) {
    reason_ = visit.energy->error();
    track_.ObserveFailure(now);
    return;
  }
  if (power) track_.GuessPower(now, *power);
  const SensorTrack::Troubles before = track_.troubles();
  const TimePoint stood_since = track_.moved_at();
  track_.ObserveEnergy(now, visit.energy->value(), power);
  if (track_.troubles().resets != before.resets)
    incidents_.Add(stood_since, now, MeasurementFlag::kCounterReset);
  if (track_.troubles().stale == before.stale) return;
  incidents_.Add(stood_since, now, MeasurementFlag::kStaleCounter);
  reason_ = {ErrorCode::kUnavailable, "the energy counter stands still"};
}

void DeviceRecord::TakePower(TimePoint now, const Result<Watts>& power) {
  if (power.ok()) {
    track_.ObservePower(now, power.value());
  } else {
    reason_ = power.error();
    track_.ObserveFailure(now);
  }
}

Watts DeviceRecord::TruePower() const {
  return (track_.curve().power() - device_.sensor.offset) / device_.sensor.gain;
}

Watts DeviceRecord::Reported(Watts power) const {
  return power * device_.sensor.gain + device_.sensor.offset;
}

void DeviceRecord::RecordPower() {
  if (!known()) return;
  const TimePoint end = track_.curve().end();
  if (end <= power_recorded_until_) return;
  const TimePoint begin = std::max(power_recorded_until_, begin_);
  // While the device could not be read nothing is known, and nothing is drawn.
  const bool dark = track_.curve().At(end).dark > track_.curve().At(begin).dark;
  if (begin < end && !dark) power_line_.Add(begin, end, TruePower().value());
  power_recorded_until_ = end;
}

void DeviceRecord::TakeTelemetry(TimePoint now, GpuReading reading) {
  const TimePoint since = last_telemetry_.value_or(now);
  if (reading.temperature.ok())
    temperature_line_.Add(since, now, reading.temperature.value().value());
  if (reading.graphics_clock.ok())
    clock_line_.Add(since, now, reading.graphics_clock.value().value());
  if (reading.enforced_limit.ok())
    limit_line_.Add(since, now, reading.enforced_limit.value().value());
  if (reading.utilization.ok())
    utilization_line_.Add(since, now, reading.utilization.value().compute);
  if (reading.average_power.ok())
    average_power_line_.Add(since, now, reading.average_power.value().value());
  if (reading.memory_power.ok())
    memory_power_line_.Add(since, now, reading.memory_power.value().value());
  if (reading.throttle.ok() && SlowedDown(reading.throttle.value()))
    incidents_.Add(Throttled() ? since : now, now, MeasurementFlag::kThrottled);
  if (telemetry_ && telemetry_->enforced_limit.ok() && reading.enforced_limit.ok() &&
      telemetry_->enforced_limit.value() != reading.enforced_limit.value())
    incidents_.Add(since, now, MeasurementFlag::kLimitChanged);
  if (reading.enforced_limit.ok() && !device_.highest_power)
    track_.SetCeiling(Reported(reading.enforced_limit.value()));
  last_telemetry_ = now;
  telemetry_ = std::move(reading);
}

bool DeviceRecord::Throttled() const {
  return telemetry_ && telemetry_->throttle.ok() && SlowedDown(telemetry_->throttle.value());
}

bool DeviceRecord::DueForTelemetry(TimePoint now, Seconds interval) const {
  return device_.gpu != nullptr && (!last_telemetry_ || now - *last_telemetry_ >= interval);
}

void DeviceRecord::ScheduleNext(TimePoint now, Seconds longest) {
  const auto safe = device_.meter->LongestReadInterval();
  if (safe) longest = std::min(longest, *safe);
  if (!known()) {
    // A device that does not answer is asked now and then.
    const TimePoint later = now + std::max<Seconds>(longest, 100ms);
    next_visit_ = {.earliest = later, .latest = later};
    return;
  }
  next_visit_ = track_.NextPoll(now, longest);
  if (safe) next_visit_.latest = std::min(next_visit_.latest, now + *safe);
}

EnergySource DeviceRecord::source() const {
  return mode_ == Mode::kPower ? EnergySource::kIntegrated : EnergySource::kCounter;
}

TimePoint DeviceRecord::settled_until() const {
  if (!known()) return TimePoint(Seconds(std::numeric_limits<double>::infinity()));
  return track_.settled_until();
}

// The curve holds readings; gain and offset of the sensor are taken out here.
EnergyCurve::Point DeviceRecord::At(TimePoint time) const {
  return known() ? Corrected(time) : EnergyCurve::Point();  // Made in place: copies cost as much.
}

EnergyCurve::Point DeviceRecord::Corrected(TimePoint time) const {
  EnergyCurve::Point point = track_.curve().At(time);
  const SensorProfile& sensor = device_.sensor;
  point.energy = (point.energy - sensor.offset * (time - begin_ - point.dark)) / sensor.gain;
  return point;
}

double DeviceRecord::HiddenWorkVariance(Joules energy, Seconds time) const {
  const SensorProfile& sensor = device_.sensor;
  if (mode_ != Mode::kPower || time <= Seconds(0)) return 0;
  return track_.curve().HiddenWorkVariance(
      Joules(energy.value() * sensor.gain) + sensor.offset * time, time,
      sensor.power_period - sensor.power_window);
}

Result<EnergyEstimate> DeviceRecord::Estimate(TimePoint begin, const EnergyCurve::Point& from,
                                              TimePoint end, const EnergyCurve::Point& to) const {
  if (!known()) return reason_;
  const Seconds time = end - begin;
  Seconds dark = to.dark - from.dark;
  // While the device does not answer, the curve's guess about the time since its end is worthless.
  if (track_.failing())
    dark += std::max<Seconds>(end - std::max(begin, track_.curve().end()), Seconds(0));
  if (time > Seconds(0) && dark >= 0.999 * time) return reason_;

  const Joules energy = to.energy - from.energy;
  const SensorProfile& sensor = device_.sensor;
  const double lit = std::max((time - dark).count(), 1e-9);
  // No std::hypot(): nothing here overflows, and every window pays for it.
  const double shared_variance =
      Squared(sensor.gain_sigma * energy.value()) + Squared((sensor.offset_sigma * time).value());
  const double variance =
      from.edge_variance + to.edge_variance +
      std::max(to.sampling_variance - from.sampling_variance, 0.0) +
      Squared(DriftSigma(from, to, sensor.power_period - sensor.power_window).value()) +
      Squared(kUnseenSwing * (to.unseen - from.unseen).value()) +
      Squared(kRhythm * (to.steps - from.steps).value()) +
      Squared(energy.value() * dark.count() / lit);
  // In a window of a few updates the errors of its edges are not independent of each other.
  const Seconds resolution = track_.update_period();
  const double correlated =
      1.0 + 0.5 * std::min(1.0, 3 * resolution / std::max<Seconds>(time, 1ns));
  const double known_variance = variance * Squared(correlated) + shared_variance;
  const double hidden_variance = HiddenWorkVariance(energy, time) * Squared(correlated);
  EnergyEstimate estimate{.energy = energy,
                          .sigma = Joules(std::sqrt(known_variance + hidden_variance)),
                          .shared_sigma = Joules(std::sqrt(shared_variance)),
                          .attributed = energy,
                          .source = source(),
                          .coverage = 1.0,
                          .updates = static_cast<int>(to.updates - from.updates),
                          .update_period = track_.update_period(),
                          .flags = incidents_.Between(begin, end)};
  if (time > Seconds(0))
    estimate.coverage = std::clamp((to.observed - from.observed) / time, 0.0, 1.0);
  if (time < 3 * track_.update_period()) estimate.flags.Set(MeasurementFlag::kShortWindow);
  if (dark > Seconds(0) || begin < *known_since_) estimate.flags.Set(MeasurementFlag::kPartial);
  if (Throttled() && end >= *last_telemetry_) estimate.flags.Set(MeasurementFlag::kThrottled);
  if (to.uneven > from.uneven) estimate.flags.Set(MeasurementFlag::kSensorAliasingPossible);
  if (to.hidden > std::max(energy * kNegligible, Joules(std::sqrt(known_variance)) * 2.0))
    estimate.flags.Set(MeasurementFlag::kPreview);
  return estimate;
}

Result<EnergyEstimate> DeviceRecord::Between(TimePoint begin, TimePoint end) const {
  if (!(begin <= end))
    return Error{ErrorCode::kInvalidArgument, "the end of a time span lies before its begin"};
  if (!known()) return reason_;
  if (track_.failing() && end > track_.curve().end()) return BetweenUnseen(begin, end);
  const TimePoint split = std::clamp(track_.curve().remembered_since(), begin, end);
  auto estimate = Estimate(split, At(split), end, At(end));
  if (split == begin || !estimate.ok()) return estimate;
  Joules forgotten(0);
  for (const Timeline::Sample& span : power_line_.Between(begin, split))
    forgotten += Watts(span.value) * (std::min(span.end, split) - std::max(span.time, begin));
  EnergyEstimate& whole = estimate.value();
  const SensorProfile& sensor = device_.sensor;
  whole.energy += forgotten;
  whole.attributed = whole.energy;
  whole.sigma = Joules(std::hypot(whole.sigma.value(), sensor.gain_sigma * forgotten.value(),
                                  (sensor.offset_sigma * (split - begin)).value()));
  whole.flags = incidents_.Between(begin, end);
  return estimate;
}

// Nothing is guessed about a device that does not answer but how far it may be off.
Result<EnergyEstimate> DeviceRecord::BetweenUnseen(TimePoint begin, TimePoint end) const {
  const TimePoint seen = track_.curve().end();
  if (begin >= seen) return reason_;
  auto estimate = Between(begin, seen);
  if (!estimate.ok()) return estimate;
  const Joules unseen = estimate.value().energy * ((end - seen) / (seen - begin));
  estimate.value().sigma = Joules(std::hypot(estimate.value().sigma.value(), unseen.value()));
  estimate.value().flags.Set(MeasurementFlag::kPartial);
  return estimate;
}

void DeviceRecord::ShowEnergy(TimePoint now, EnergyMonitor::Present& present) {
  // Nothing is guessed about a device that does not answer.
  const TimePoint seen = std::max(track_.curve().end(), begin_);
  const TimePoint until = track_.failing() ? seen : std::max(seen, now);
  const auto estimate = Estimate(begin_, Origin(), until, At(until));
  if (estimate.ok()) {
    // The guess about the time since the last update may shrink later; a total that was shown never
    // does.
    present.total = std::max(estimate.value().energy, shown_total_);
    shown_total_ = present.total.value();
    present.total_sigma = estimate.value().sigma;
  } else {
    present.total = estimate.error();
  }
  if (At(seen).dark > At(seen - 1ms).dark) {
    present.power = reason_;
    return;
  }
  const SensorProfile& sensor = device_.sensor;
  const Watts power = TruePower();
  present.power = power;
  present.power_sigma =
      Watts(std::hypot(track_.curve().power_sigma().value(), sensor.gain_sigma * power.value(),
                       sensor.offset_sigma.value()));
}

EnergyMonitor::Present DeviceRecord::Now(TimePoint now) {
  EnergyMonitor::Present present{.total = Missing<Joules>("read energy"),
                                 .total_sigma = Joules(0),
                                 .power = Missing<Watts>("read power"),
                                 .power_sigma = Watts(0),
                                 .temperature = Missing<Celsius>("read temperature"),
                                 .utilization = Missing<Utilization>("read utilisation"),
                                 .graphics_clock = Missing<Hertz>("read graphics clock"),
                                 .requested_limit = Missing<Watts>("read power limit"),
                                 .enforced_limit = Missing<Watts>("read power limit"),
                                 .instant_power = Missing<Watts>("read instant power"),
                                 .average_power = Missing<Watts>("read average power"),
                                 .memory_power = Missing<Watts>("read memory power"),
                                 .throttle = Missing<ThrottleReasons>("read throttle reasons"),
                                 .source = source(),
                                 .update_period = track_.update_period(),
                                 .flags = incidents_.All()};
  if (known()) {
    ShowEnergy(now, present);
  } else {
    present.total = reason_;
    present.power = reason_;
  }
  if (telemetry_) {
    present.temperature = telemetry_->temperature;
    present.utilization = telemetry_->utilization;
    present.graphics_clock = telemetry_->graphics_clock;
    present.requested_limit = telemetry_->requested_limit;
    present.enforced_limit = telemetry_->enforced_limit;
    present.instant_power = telemetry_->instant_power;
    present.average_power = telemetry_->average_power;
    present.memory_power = telemetry_->memory_power;
    present.throttle = telemetry_->throttle;
  }
  return present;
}

const Timeline& DeviceRecord::Line(EnergyMonitor::Quantity quantity) const {
  switch (quantity) {
    case EnergyMonitor::Quantity::kPower:
      return power_line_;
    case EnergyMonitor::Quantity::kTemperature:
      return temperature_line_;
    case EnergyMonitor::Quantity::kGraphicsClock:
      return clock_line_;
    case EnergyMonitor::Quantity::kPowerLimit:
      return limit_line_;
    case EnergyMonitor::Quantity::kUtilization:
      return utilization_line_;
    case EnergyMonitor::Quantity::kAveragePower:
      return average_power_line_;
    case EnergyMonitor::Quantity::kMemoryPower:
      return memory_power_line_;
  }
  return power_line_;
}

}  // namespace zeus
