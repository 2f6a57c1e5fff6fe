#include "apps/zeus/calibrate/calibrate_session.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "apps/zeus/calibrate/command_load.h"
#include "apps/zeus/calibrate/recording.h"
#include "apps/zeus/calibrate/simulated_load.h"
#include "zeus/base/file.h"
#include "zeus/monitor/calibration/gain_fit.h"
#include "zeus/monitor/calibration/meter_csv.h"
#include "zeus/monitor/calibration/response.h"

namespace zeus::cli {
namespace {

using calibration::LoadPattern;
using calibration::MeterSample;
using calibration::Response;
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
