#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"
#include "python/bindings/monitor.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::python {

// The recording of a monitor, with times in seconds since 1970. It stays readable when the monitor
// is closed. Used with the GIL held; reading a recording takes microseconds.
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
    double sigma;  // NaN if unknown.
  };

  // Throws Failure when the monitor is closed.
  explicit Recording(std::shared_ptr<Monitor> monitor);
  ~Recording() override;

  std::vector<std::string> DeviceNames() const;

  // All of these throw Failure when a device has no such value. `device` is an index into
  // DeviceNames().
  double Present(std::size_t device, Quantity quantity) const;
  // Returns the spans that overlap the given time; nullopt: everything recorded. Times in which the
  // device could not be read have no span.
  std::vector<Span> History(std::size_t device, Quantity quantity, std::optional<double> begin,
                            std::optional<double> end);
  // Returns the beginning of the first span; nullopt if there is none.
  std::optional<double> Since(std::size_t device, Quantity quantity);
  Energy EnergyBetween(std::size_t device, double begin, double end);
  Energy TotalEnergy(std::size_t device) const;

  // Seconds of recorded time per second of wall time: 1 except on simulated nodes.
  double time_scale() const { return scale_; }

  // Closes the monitor and keeps its recording. Does nothing in a forked child.
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
  // Returns the times without any reading of the device.
  std::vector<Gap> SilentTimes(std::size_t device) const;
  // Adds the times within [begin, end] in which the energy of the device is unknown.
  void FindDark(std::size_t device, TimePoint begin, TimePoint end, std::vector<Gap>& dark) const;
  // Returns all such times of at least `given_up`, sorted.
  std::vector<Gap> DarkTimes(std::size_t device, const std::vector<Timeline::Sample>& samples,
                             Seconds given_up) const;
  // Removes the times in which the device could not be read, over which recorded power simply
  // continues.
  std::vector<Timeline::Sample> KnownPower(std::size_t device,
                                           const std::vector<Timeline::Sample>& samples) const;
  // Updates the offset between the monitor's time and wall time. Reported times do not change
  // afterwards, unless the system's clock is set.
  void Synchronize();
  double ToUnix(TimePoint time) const {
    return (time.time_since_epoch().count() - origin_) / scale_;
  }
  TimePoint FromUnix(double time) const { return TimePoint(Seconds(time * scale_ + origin_)); }

  std::shared_ptr<Monitor> monitor_;
  std::shared_ptr<NodeMonitor> node_;  // Null after closing.
  bool ending_ = false;  // The interpreter is ending, so the recording need not be kept.
  std::optional<std::vector<Kept>> kept_;
  double scale_ = 1;
  std::optional<double> known_origin_;
  double origin_ = 0;  // The monitor's time at the beginning of 1970.
};

namespace {

using Quantity = Recording::Quantity;

// Clocks are read one after the other and slewed by less than this between two calls.
constexpr double kSameTime = 1e-3;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::array kKeptQuantities = {Quantity::kPower, Quantity::kAveragePower,
                                        Quantity::kMemoryPower, Quantity::kTemperature};

// A device that does not answer is considered unreadable after this many updates of its sensor.
constexpr double kUpdatesUntilDark = 3;
constexpr Seconds kFinest{1e-3};

double Integral(const std::vector<Recording::Span>& spans, double begin, double end) {
  double joules = 0;
  for (const Recording::Span& span : spans)
    joules += span.value * std::max(0.0, std::min(end, span.end) - std::max(begin, span.begin));
  return joules;
}

Result<double> PresentValue(const EnergyMonitor::Present& present, Quantity quantity) {
  const auto value = [](const auto& result) -> Result<double> {
    if (!result.ok()) return result.error();
    return result.value().value();
  };
  switch (quantity) {
    case Quantity::kPower:
      return value(present.power);
    case Quantity::kTemperature:
      return value(present.temperature);
    case Quantity::kGraphicsClock:
      return value(present.graphics_clock);
    case Quantity::kPowerLimit:
      return value(present.enforced_limit);
    case Quantity::kAveragePower:
      return value(present.average_power);
    case Quantity::kMemoryPower:
      return value(present.memory_power);
    case Quantity::kUtilization:
      break;
  }
  if (!present.utilization.ok()) return present.utilization.error();
  return present.utilization.value().compute;
}

}  // namespace

Recording::Recording(std::shared_ptr<Monitor> monitor)
    : Closeable(monitor.get()),
      monitor_(std::move(monitor)),
      node_(monitor_->recording()),
      scale_(monitor_->time_scale()) {}

Recording::~Recording() {
  ending_ = true;
  Close();
}

EnergyMonitor& Recording::energy() const {
  if (!node_ || InForkedChild()) CheckOpen("monitor");
  return node_->monitor();
}

std::vector<std::string> Recording::DeviceNames() const {
  std::vector<std::string> names;
  if (kept_) {
    for (const Kept& device : *kept_) names.push_back(device.name);
    return names;
  }
  for (std::size_t i = 0; i < energy().device_count(); ++i)
    names.push_back(energy().device_name(i));
  return names;
}

void Recording::CheckDevice(std::size_t device) const {
  const std::size_t count = kept_ ? kept_->size() : energy().device_count();
  if (device < count) return;
  throw Failure(
      {ErrorCode::kNotFound, fmt::format("{} devices are recorded, not {}", count, device)});
}

const Recording::KeptLine& Recording::Line(std::size_t device, Quantity quantity) const {
  for (const KeptLine& line : (*kept_)[device].lines)
    if (line.quantity == quantity) return line;
  throw Failure({ErrorCode::kUnavailable, "the recording was stopped"});
}

double Recording::Present(std::size_t device, Quantity quantity) const {
  CheckDevice(device);
  return Unwrap(kept_ ? Line(device, quantity).present
                      : PresentValue(energy().Now(device), quantity));
}

void Recording::Synchronize() {
  const Clock& clock = energy().clock();
  const double wall = std::chrono::duration<double>(clock.WallNow().time_since_epoch()).count();
  const double origin = clock.Now().time_since_epoch().count() - wall * scale_;
  if (!known_origin_ || std::abs(origin - *known_origin_) > kSameTime * scale_)
    known_origin_ = origin;
  origin_ = *known_origin_;
}

std::vector<Recording::Span> Recording::History(std::size_t device, Quantity quantity,
                                                std::optional<double> begin,
                                                std::optional<double> end) {
  constexpr double kEver = std::numeric_limits<double>::infinity();
  CheckDevice(device);
  const double from = begin.value_or(-kEver);
  const double until = end.value_or(kEver);
  std::vector<Span> spans;
  if (kept_) {
    for (const Span& span : Line(device, quantity).spans)
      if (span.end >= from && span.begin < until) spans.push_back(span);
    return spans;
  }
  Synchronize();
  std::vector<Timeline::Sample> samples =
      energy().History(device, quantity, FromUnix(from), FromUnix(until));
  if (quantity == Quantity::kPower) samples = KnownPower(device, samples);
  for (const Timeline::Sample& sample : samples)
    if (sample.end > FromUnix(from) && sample.time < FromUnix(until))
      spans.push_back(
          {.begin = ToUnix(sample.time), .end = ToUnix(sample.end), .value = sample.value});
  return spans;
}

std::vector<Recording::Gap> Recording::SilentTimes(std::size_t device) const {
  constexpr TimePoint kNever{Seconds(std::numeric_limits<double>::infinity())};
  std::vector<Timeline::Sample> told;
  // These values rarely change, so their lines have few spans.
  for (const Quantity quantity : {Quantity::kTemperature, Quantity::kPowerLimit})
    for (const Timeline::Sample& sample :
         energy().History(device, quantity, TimePoint(-kNever.time_since_epoch()), kNever))
      told.push_back(sample);
  std::ranges::sort(told, {}, &Timeline::Sample::time);
  std::vector<Gap> gaps;
  if (told.empty()) return gaps;
  TimePoint reached = told.front().end;
  for (const Timeline::Sample& sample : told) {
    if (sample.time > reached + kFinest) gaps.push_back({.begin = reached, .end = sample.time});
    reached = std::max(reached, sample.end);
  }
  const EnergyMonitor::Present present = energy().Now(device);
  if (!present.temperature.ok() && !present.enforced_limit.ok())
    gaps.push_back({.begin = reached, .end = kNever});
  return gaps;
}

void Recording::FindDark(std::size_t device, TimePoint begin, TimePoint end,
                         std::vector<Gap>& dark) const {
  const auto estimate = energy().EnergyBetween(device, begin, end);
  if (estimate.ok() && !estimate.value().flags.Has(MeasurementFlag::kPartial)) return;
  if (!estimate.ok() || estimate.value().coverage == 0) {
    if (!dark.empty() && dark.back().end == begin) {
      dark.back().end = end;
    } else {
      dark.push_back({.begin = begin, .end = end});
    }
    return;
  }
  if (end - begin < kFinest) return;
  const TimePoint middle = begin + (end - begin) / 2;
  FindDark(device, begin, middle, dark);
  FindDark(device, middle, end, dark);
}

std::vector<Recording::Gap> Recording::DarkTimes(std::size_t device,
                                                 const std::vector<Timeline::Sample>& samples,
                                                 Seconds given_up) const {
  const std::vector<Gap> silent = SilentTimes(device);
  std::vector<Gap> dark;
  for (const Timeline::Sample& sample : samples) {
    // The power of a device that is not read does not change, so it forms one long span.
    if (sample.end - sample.time < given_up) continue;
    FindDark(device, sample.time, sample.end, dark);
    // The energy curve does not reach into the distant past; silent times do.
    for (const Gap& gap : silent)
      dark.push_back(
          {.begin = std::max(gap.begin, sample.time), .end = std::min(gap.end, sample.end)});
  }
  std::erase_if(dark, [&](const Gap& gap) { return gap.end - gap.begin < given_up; });
  std::ranges::sort(dark, {}, &Gap::begin);
  return dark;
}

std::vector<Timeline::Sample> Recording::KnownPower(
    std::size_t device, const std::vector<Timeline::Sample>& samples) const {
  if (samples.empty()) return samples;
  const Seconds given_up = kUpdatesUntilDark * energy().Now(device).update_period;
  const std::vector<Gap> gaps = DarkTimes(device, samples, given_up);
  std::vector<Timeline::Sample> known;
  for (const Timeline::Sample& sample : samples) {
    TimePoint from = sample.time;
    for (const Gap& gap : gaps) {
      if (gap.end < from || gap.begin >= sample.end) continue;
      if (gap.begin > from)
        known.push_back({.time = from, .value = sample.value, .end = gap.begin});
      from = std::max(from, gap.end);
      // The first update after a gap is a mean that includes a part of the gap.
      if (gap.end - sample.time < kFinest && sample.end - sample.time < given_up) from = sample.end;
    }
    if (from < sample.end)
      known.push_back({.time = from, .value = sample.value, .end = sample.end});
  }
  return known;
}

std::optional<double> Recording::Since(std::size_t device, Quantity quantity) {
  const std::vector<Span> spans = History(device, quantity, {}, {});
  return spans.empty() ? std::nullopt : std::optional(spans.front().begin);
}

Recording::Energy Recording::EnergyBetween(std::size_t device, double begin, double end) {
  CheckDevice(device);
  if (kept_) {
    const std::vector<Span>& line = Line(device, Quantity::kPower).spans;
    if (line.empty() || begin >= line.back().end)
      throw Failure({ErrorCode::kUnavailable, "the recording was stopped before"});
    return {.joules = scale_ * Integral(line, begin, end), .sigma = kUnknown};
  }
  Synchronize();
  const TimePoint until = std::min(FromUnix(end), energy().clock().Now());
  const EnergyEstimate estimate =
      Unwrap(energy().EnergyBetween(device, std::min(FromUnix(begin), until), until));
  return {.joules = estimate.energy.value(), .sigma = estimate.sigma.value()};
}

Recording::Energy Recording::TotalEnergy(std::size_t device) const {
  CheckDevice(device);
  const EnergyMonitor::Present present = energy().Now(device);
  return {.joules = Unwrap(present.total).value(), .sigma = present.total_sigma.value()};
}

void Recording::Stop() {
  if (InForkedChild()) return;
  Close();
  monitor_->Close();
}

void Recording::DoClose() {
  if (ending_) return node_.reset();
  std::vector<Kept> kept;
  const std::vector<std::string> names = DeviceNames();
  for (std::size_t device = 0; device < names.size(); ++device) {
    kept.push_back({.name = names[device], .lines = {}});
    const EnergyMonitor::Present present = energy().Now(device);
    for (const Quantity quantity : kKeptQuantities)
      kept.back().lines.push_back({.quantity = quantity,
                                   .spans = History(device, quantity, {}, {}),
                                   .present = PresentValue(present, quantity)});
  }
  kept_ = std::move(kept);
  node_.reset();
}

void Recording::Abandon() {
  // The node is leaked for the reason given in Monitor::Abandon().
  static auto* const nodes = new std::vector<std::shared_ptr<NodeMonitor>>();
  nodes->push_back(std::move(node_));
}

namespace {

// Opens a monitor for the recording alone: without windows, and without sharing between processes.
std::unique_ptr<Recording> Record(std::optional<std::vector<unsigned>> gpus,
                                  double telemetry_interval, bool rails) {
  const std::vector<unsigned> none;
  return std::make_unique<Recording>(
      Monitor::Open({.gpus = rails ? none : std::move(gpus),
                     .cpus = none,
                     .share = false,
                     .telemetry_interval = Seconds(telemetry_interval)}));
}

py::list History(Recording& recording, std::size_t device, Recording::Quantity quantity,
                 std::optional<double> begin, std::optional<double> end) {
  py::list spans;
  for (const Recording::Span& span : recording.History(device, quantity, begin, end))
    spans.append(py::make_tuple(span.begin, span.end, span.value));
  return spans;
}

py::tuple ToTuple(const Recording::Energy& energy) {
  return py::make_tuple(energy.joules, energy.sigma);
}

}  // namespace

void BindRecording(py::module_& core) {
  py::module_ module = core.def_submodule("recording");
  py::enum_<Recording::Quantity>(module, "Quantity")
      .value("POWER", Recording::Quantity::kPower)
      .value("AVERAGE_POWER", Recording::Quantity::kAveragePower)
      .value("MEMORY_POWER", Recording::Quantity::kMemoryPower)
      .value("TEMPERATURE", Recording::Quantity::kTemperature)
      .value("GRAPHICS_CLOCK", Recording::Quantity::kGraphicsClock)
      .value("POWER_LIMIT", Recording::Quantity::kPowerLimit)
      .value("UTILIZATION", Recording::Quantity::kUtilization);
  py::class_<Recording>(module, "Recording")
      .def(py::init<std::shared_ptr<Monitor>>(), py::arg("monitor"))
      .def_static("start", &Record, py::arg("gpus"), py::arg("telemetry_interval"),
                  py::arg("rails") = false)
      .def_property_readonly("device_names", &Recording::DeviceNames)
      .def_property_readonly("time_scale", &Recording::time_scale)
      .def("present", &Recording::Present, py::arg("device"), py::arg("quantity"))
      .def("history", &History, py::arg("device"), py::arg("quantity"),
           py::arg("begin") = py::none(), py::arg("end") = py::none())
      .def("since", &Recording::Since, py::arg("device"), py::arg("quantity"))
      .def(
          "energy",
          [](Recording& self, std::size_t device, double begin, double end) {
            return ToTuple(self.EnergyBetween(device, begin, end));
          },
          py::arg("device"), py::arg("begin"), py::arg("end"))
      .def(
          "total_energy",
          [](const Recording& self, std::size_t device) {
            return ToTuple(self.TotalEnergy(device));
          },
          py::arg("device"))
      .def("stop", &Recording::Stop);
}

}  // namespace zeus::python
