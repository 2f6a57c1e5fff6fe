#include "apps/zeus/calibrate/calibrate_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "apps/zeus/calibrate/load.h"
#include "apps/zeus/calibrate/recording.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/monitor/calibration/gain_fit.h"
#include "zeus/monitor/calibration/meter_csv.h"
#include "zeus/monitor/calibration/response.h"
#include "zeus/monitor/sensor_profile.h"

namespace zeus::cli {
namespace {

using calibration::Estimate;
using calibration::Response;

double Milli(Seconds time) { return time.count() * 1e3; }

// In milliseconds, as the columns say.
std::string ToText(const Estimate& estimate) {
  return WithSigma(Milli(estimate.value), Milli(estimate.sigma), "");
}

// fmt counts columns of text, and "±" is one.
std::string Row(const std::string& sensor, const std::string& period, const std::string& window,
                const std::string& delay, const std::string& coverage) {
  return fmt::format("  {:<14} {:>20} {:>18} {:>16} {:>9}\n", sensor, period, window, delay,
                     coverage);
}

std::string ResponseRows(const std::string& sensor, const std::optional<Response>& response,
                         Seconds prior_period, Seconds prior_window) {
  if (!response) return "";
  return Row(sensor, ToText(response->period), ToText(response->window), ToText(response->delay),
             PercentText(response->coverage(), 0)) +
         Row("  prior", fmt::format("{:g}", Milli(prior_period)),
             fmt::format("{:g}", Milli(prior_window)), "",
             PercentText(std::min(1.0, prior_window / prior_period), 0));
}

std::string GainText(const GpuReport& report, const SensorProfile& prior) {
  const auto& meter = report.calibration.meter;
  if (!meter) {
    return fmt::format("  gain           {} (prior: give --meter to measure it)\n",
                       WithSigma(1, prior.gain_sigma, ""));
  }
  const SensorProfile profile = ApplyCalibration(prior, report.calibration);
  return fmt::format(
      "  gain           {}, offset {} ({} plateaus, R² {:.5f}, meter "
      "{:.2f} s late{})\n",
      WithSigma(profile.gain, profile.gain_sigma, ""),
      WithSigma(profile.offset, profile.offset_sigma), meter->fit.plateaus, meter->fit.r_squared,
      meter->fit.meter_delay.count(),
      meter->alone ? "" : "; the offset is the prior's, as the meter saw other consumers too");
}

Json ProfileToJson(const SensorProfile& profile) {
  return {{"counter_period_seconds", profile.counter_period.count()},
          {"counter_delay_seconds", profile.counter_delay.count()},
          {"power_period_seconds", profile.power_period.count()},
          {"power_window_seconds", profile.power_window.count()},
          {"power_delay_seconds", profile.power_delay.count()},
          {"gain", profile.gain},
          {"gain_sigma", profile.gain_sigma},
          {"offset_watts", profile.offset.value()},
          {"offset_sigma_watts", profile.offset_sigma.value()},
          {"origin", profile.origin}};
}

}  // namespace

std::string ToText(const GpuReport& report) {
  using namespace std::chrono_literals;
  const GpuIdentity& gpu = report.calibration.gpu;
  const SensorProfile prior = PriorProfile(gpu);
  std::string text =
      fmt::format("{}  {}  {}  driver {}\n", report.device, Printable(gpu.model),
                  Printable(gpu.uuid), gpu.driver.empty() ? "unknown" : Printable(gpu.driver));
  text += Row("sensor", "update period [ms]", "window [ms]", "delay [ms]", "coverage");
  text += ResponseRows("instant power", report.calibration.instant_power, prior.power_period,
                       prior.power_window);
  text += ResponseRows("average power", report.calibration.average_power, prior.power_period, 1s);
  text += ResponseRows("counter", report.calibration.counter, prior.counter_period,
                       prior.counter_period);
  for (const SensorFailure& failure : report.failures)
    text += fmt::format("  {:<14} {}\n", failure.sensor, failure.error.message);
  text += GainText(report, prior);
  text += report.file ? fmt::format("  kept in {}\n", Printable(report.file->string()))
                      : "  not kept\n";
  return text;
}

Json ToJson(const GpuReport& report) {
  const SensorProfile prior = PriorProfile(report.calibration.gpu);
  Json failures = Json::array();
  for (const SensorFailure& failure : report.failures)
    failures.push_back({{"sensor", failure.sensor}, {"reason", failure.error.message}});
  return {{"device", report.device},
          {"calibration", zeus::ToJson(report.calibration)},
          {"failures", std::move(failures)},
          {"profile", ProfileToJson(ApplyCalibration(prior, report.calibration))},
          {"prior", ProfileToJson(prior)},
          {"file", report.file ? Json(report.file->string()) : Json()}};
}

namespace {

using calibration::LoadPattern;
using calibration::MeterSample;
using calibration::SensorTrace;

constexpr std::size_t kLargestMeterLog = 64UL << 20U;

Result<std::unique_ptr<SwitchedLoad>> StartLoad(Clock& clock, Gpu& gpu, const std::string& command,
                                                SignalWatch& signals) {
  if (!command.empty()) return StartCommandLoad(clock, command, gpu, signals);
  ZEUS_TRY(auto load, OpenSimulatedLoad(clock, gpu));
  if (load) return load;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is not simulated: give a --load-command that keeps it busy "
                           "(docs/calibration.md has one)",
                           gpu.name())};
}

Result<std::vector<MeterSample>> ReadMeter(const std::filesystem::path& file) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file, kLargestMeterLog));
  return calibration::ParseMeterCsv(text, file.string());
}

// Measures one sensor; where that fails the report says why.
std::optional<Response> MeasureResponse(
    const char* name, const RecordedSensor& sensor, const LoadPattern& load,
    Result<Response> (*fit)(const SensorTrace&, const LoadPattern&), GpuReport& report) {
  const bool never_read = sensor.error && sensor.trace.changes() == 0;
  if (never_read && sensor.error->code == ErrorCode::kNotSupported) return std::nullopt;
  auto response = never_read ? Result<Response>(*sensor.error) : fit(sensor.trace, load);
  if (response.ok()) return std::move(response).value();
  report.failures.push_back({name, std::move(response).error()});
  return std::nullopt;
}

GpuReport MeasureAll(const RecordedGpu& recorded, WallTime now) {
  GpuReport report{.device = recorded.gpu->name(),
                   .calibration = {.gpu = recorded.gpu->identity(),
                                   .taken_at = now,
                                   .instant_power = std::nullopt,
                                   .average_power = std::nullopt,
                                   .counter = std::nullopt,
                                   .meter = std::nullopt},
                   .failures = {},
                   .file = std::nullopt};
  SensorCalibration& found = report.calibration;
  const auto power = calibration::FitPowerResponse;
  const auto counter = calibration::FitCounterResponse;
  found.instant_power =
      MeasureResponse("instant power", recorded.instant_power, recorded.load, power, report);
  found.average_power =
      MeasureResponse("average power", recorded.average_power, recorded.load, power, report);
  found.counter = MeasureResponse("counter", recorded.counter, recorded.load, counter, report);
  return report;
}

Status Compare(const RecordedGpu& recorded, const RecordingEnd& end,
               const ExternalMeterOptions& options, SensorCalibration& found) {
  ZEUS_TRY(const std::vector<MeterSample> meter, ReadMeter(options.file));
  const bool instant = found.instant_power.has_value();
  const auto& response = instant ? found.instant_power : found.average_power;
  if (!response) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("{} has no power reading to compare with the meter", recorded.gpu->name())};
  }
  auto fit = calibration::FitGain(
      {.watts = instant ? recorded.instant_power.trace : recorded.average_power.trace,
       .response = *response,
       .load = recorded.load,
       .end = end.time,
       .meter = meter,
       .clocks = end.clocks,
       .meter_delay = options.delay});
  if (!fit.ok()) return std::move(fit).error().While(options.file.string());
  found.meter = {
      .fit = std::move(fit).value(), .accuracy = options.accuracy, .alone = options.alone};
  return Ok();
}

}  // namespace

Result<std::vector<GpuReport>> Calibrate(Clock& clock, const std::vector<Gpu*>& gpus,
                                         const CalibrateOptions& options, SignalWatch& signals) {
  // A log that cannot be read is better refused now than after the measurement.
  if (options.meter) {
    ZEUS_TRY(const auto so_far, ReadMeter(options.meter->file));
    static_cast<void>(so_far);
  }
  std::vector<RecordedGpu> recorded;
  for (Gpu* gpu : gpus) {
    ZEUS_TRY(auto load, StartLoad(clock, *gpu, options.load_command, signals));
    recorded.push_back({.gpu = gpu, .switched_load = std::move(load)});
  }
  const auto schedule = MakeSchedule({.period = options.period,
                                      .duration = options.duration,
                                      .for_meter = options.meter.has_value()});
  ZEUS_TRY(const RecordingEnd end, Record(clock, recorded, schedule, signals));

  std::vector<GpuReport> reports;
  for (RecordedGpu& gpu : recorded) {
    gpu.switched_load.reset();
    reports.push_back(MeasureAll(gpu, end.clocks.wall));
    if (options.meter)
      ZEUS_RETURN_IF_ERROR(Compare(gpu, end, *options.meter, reports.back().calibration));
  }
  return reports;
}

}  // namespace zeus::cli
