#include "apps/zeus/calibrate/calibrate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
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
             fmt::format("{:.0f} %", 100 * response->coverage())) +
         Row("  prior", fmt::format("{:g}", Milli(prior_period)),
             fmt::format("{:g}", Milli(prior_window)), "",
             fmt::format("{:.0f} %", 100 * std::min(1.0, prior_window / prior_period)));
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

}  // namespace zeus::cli
