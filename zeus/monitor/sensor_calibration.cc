#include "zeus/monitor/sensor_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "zeus/base/json.h"

namespace zeus {
namespace {

using calibration::Estimate;
using calibration::GainFit;
using calibration::Response;

constexpr std::string_view kKind = "zeus sensor calibration";
constexpr int kVersion = 1;

Json EstimateToJson(const Estimate& estimate) {
  return {{"seconds", estimate.value.count()}, {"sigma_seconds", estimate.sigma.count()}};
}

Json ResponseToJson(const std::optional<Response>& response) {
  if (!response) return nullptr;
  return {{"update_period", EstimateToJson(response->period)},
          {"window", EstimateToJson(response->window)},
          {"delay", EstimateToJson(response->delay)},
          {"coverage", response->coverage()},
          {"step_watts", response->step.value()},
          {"noise_watts", response->noise.value()},
          {"updates", response->updates}};
}

Json MeterToJson(const std::optional<SensorCalibration::MeterComparison>& meter) {
  if (!meter) return nullptr;
  return {{"gain", meter->fit.gain},
          {"gain_sigma", meter->fit.gain_sigma},
          {"offset_watts", meter->fit.offset.value()},
          {"offset_sigma_watts", meter->fit.offset_sigma.value()},
          {"r_squared", meter->fit.r_squared},
          {"plateaus", meter->fit.plateaus},
          {"meter_delay_seconds", meter->fit.meter_delay.count()},
          {"meter_accuracy", meter->accuracy},
          {"meter_sees_this_gpu_alone", meter->alone}};
}

// A number between two bounds: files are edited by hand and copied from elsewhere.
Result<double> GetNumber(const Json& object, std::string_view field, double min, double max) {
  ZEUS_TRY(const double number, GetField<double>(object, field));
  if (number >= min && number <= max) return number;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("field \"{}\" is {:g} and must lie between {:g} and {:g}", field, number,
                           min, max)};
}

Result<Estimate> GetEstimate(const Json& object, std::string_view field, Seconds shortest) {
  constexpr double kLongest = 60;
  ZEUS_TRY(const Json estimate, GetField<Json>(object, field));
  auto value = GetNumber(estimate, "seconds", shortest.count(), kLongest);
  if (!value.ok()) return std::move(value).error().While(field);
  auto sigma = GetNumber(estimate, "sigma_seconds", 0, kLongest);
  if (!sigma.ok()) return std::move(sigma).error().While(field);
  return Estimate{Seconds(value.value()), Seconds(sigma.value())};
}

Result<Response> ParseResponse(const Json& json) {
  constexpr double kMostWatts = 1e6;
  constexpr Seconds kShortest(1e-6);
  constexpr Seconds kEarliest(-10);  // A delay is known to a few milliseconds either way.
  ZEUS_TRY(const Estimate period, GetEstimate(json, "update_period", kShortest));
  ZEUS_TRY(const Estimate window, GetEstimate(json, "window", kShortest));
  ZEUS_TRY(const Estimate delay, GetEstimate(json, "delay", kEarliest));
  ZEUS_TRY(const double step, GetNumber(json, "step_watts", 0, kMostWatts));
  ZEUS_TRY(const double noise, GetNumber(json, "noise_watts", 0, kMostWatts));
  ZEUS_TRY(const int updates, GetField<int>(json, "updates"));
  return Response{.period = period,
                  .window = window,
                  .delay = delay,
                  .step = Watts(step),
                  .noise = Watts(noise),
                  .updates = updates};
}

Result<SensorCalibration::MeterComparison> ParseMeter(const Json& json) {
  constexpr double kMostWatts = 1e6;
  constexpr double kMostSeconds = 1e6;
  ZEUS_TRY(const double gain, GetNumber(json, "gain", 0.1, 10));
  ZEUS_TRY(const double gain_sigma, GetNumber(json, "gain_sigma", 0, 1));
  ZEUS_TRY(const double offset, GetNumber(json, "offset_watts", -kMostWatts, kMostWatts));
  ZEUS_TRY(const double offset_sigma, GetNumber(json, "offset_sigma_watts", 0, kMostWatts));
  ZEUS_TRY(const double r_squared, GetNumber(json, "r_squared", -1, 1));
  ZEUS_TRY(const int plateaus, GetField<int>(json, "plateaus"));
  ZEUS_TRY(const double delay, GetNumber(json, "meter_delay_seconds", -kMostSeconds, kMostSeconds));
  ZEUS_TRY(const double accuracy, GetNumber(json, "meter_accuracy", 0, 1));
  ZEUS_TRY(const bool alone, GetField<bool>(json, "meter_sees_this_gpu_alone"));
  return SensorCalibration::MeterComparison{.fit = {.gain = gain,
                                                    .gain_sigma = gain_sigma,
                                                    .offset = Watts(offset),
                                                    .offset_sigma = Watts(offset_sigma),
                                                    .r_squared = r_squared,
                                                    .plateaus = plateaus,
                                                    .meter_delay = Seconds(delay)},
                                            .accuracy = accuracy,
                                            .alone = alone};
}

// nullopt where the field is null or missing.
template <class T>
Result<std::optional<T>> ParsePart(const Json& json, std::string_view field,
                                   Result<T> (*parse)(const Json&)) {
  ZEUS_TRY(const auto part, GetOptionalField<Json>(json, field));
  if (!part) return std::optional<T>();
  auto parsed = parse(*part);
  if (!parsed.ok()) return std::move(parsed).error().While(field);
  return std::optional<T>(std::move(parsed).value());
}

Status CheckKind(const Json& json) {
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "not a JSON object"};
  ZEUS_TRY(const std::string kind, GetField<std::string>(json, "kind"));
  if (kind != kKind) return Error{ErrorCode::kInvalidArgument, "not a sensor calibration"};
  ZEUS_TRY(const int version, GetField<int>(json, "version"));
  if (version == kVersion) return Ok();
  return Error{ErrorCode::kNotSupported,
               fmt::format("has version {} and this Zeus reads version {}: calibrate again",
                           version, kVersion)};
}

Result<Vendor> ParseVendor(const std::string& name) {
  for (const Vendor vendor : {Vendor::kNvidia, Vendor::kAmd, Vendor::kIntel})
    if (name == VendorName(vendor)) return vendor;
  return Error{ErrorCode::kInvalidArgument, "field \"vendor\" names no vendor"};
}

}  // namespace

SensorProfile ApplyCalibration(SensorProfile prior, const SensorCalibration& calibration) {
  SensorProfile profile = std::move(prior);
  const auto& power =
      calibration.instant_power ? calibration.instant_power : calibration.average_power;
  if (power) {
    profile.power_period = power->period.value;
    profile.power_window = power->window.value;
    profile.power_delay = std::max(Seconds(0), power->delay.value);
  }
  if (calibration.counter) {
    profile.counter_period = calibration.counter->period.value;
    profile.counter_delay = std::max(Seconds(0), calibration.counter->delay.value);
  }
  if (calibration.meter) {
    const GainFit& fit = calibration.meter->fit;
    profile.gain = fit.gain;
    profile.gain_sigma = std::hypot(fit.gain_sigma / fit.gain, calibration.meter->accuracy);
    if (calibration.meter->alone) {
      profile.offset = fit.offset;
      profile.offset_sigma = fit.offset_sigma;
    }
  }
  profile.origin = "calibrated";
  return profile;
}

Json ToJson(const SensorCalibration& calibration) {
  return {{"kind", kKind},
          {"version", kVersion},
          {"uuid", calibration.gpu.uuid},
          {"driver", calibration.gpu.driver},
          {"vendor", VendorName(calibration.gpu.vendor)},
          {"model", calibration.gpu.model},
          {"taken_at_unix_seconds",
           std::chrono::duration<double>(calibration.taken_at.time_since_epoch()).count()},
          {"instant_power", ResponseToJson(calibration.instant_power)},
          {"average_power", ResponseToJson(calibration.average_power)},
          {"counter", ResponseToJson(calibration.counter)},
          {"meter", MeterToJson(calibration.meter)}};
}

Result<SensorCalibration> ParseSensorCalibration(const Json& json) {
  constexpr double kLatestTime = 253'402'300'800.0;  // Start of the year 10000.
  ZEUS_RETURN_IF_ERROR(CheckKind(json));
  SensorCalibration calibration{};
  ZEUS_TRY(calibration.gpu.uuid, GetField<std::string>(json, "uuid"));
  ZEUS_TRY(calibration.gpu.driver, GetField<std::string>(json, "driver"));
  ZEUS_TRY(calibration.gpu.model, GetField<std::string>(json, "model"));
  ZEUS_TRY(const std::string vendor, GetField<std::string>(json, "vendor"));
  ZEUS_TRY(calibration.gpu.vendor, ParseVendor(vendor));
  ZEUS_TRY(const double taken_at, GetNumber(json, "taken_at_unix_seconds", 0, kLatestTime));
  calibration.taken_at = WallTime(std::chrono::microseconds(std::llround(taken_at * 1e6)));
  ZEUS_TRY(calibration.instant_power, ParsePart<Response>(json, "instant_power", ParseResponse));
  ZEUS_TRY(calibration.average_power, ParsePart<Response>(json, "average_power", ParseResponse));
  ZEUS_TRY(calibration.counter, ParsePart<Response>(json, "counter", ParseResponse));
  ZEUS_TRY(calibration.meter,
           ParsePart<SensorCalibration::MeterComparison>(json, "meter", ParseMeter));
  return calibration;
}

}  // namespace zeus
