// Where each number of a RunReport comes from, for people: `zeus run --explain`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "apps/zeus/run/report.h"
#include "zeus/base/quantity_text.h"

namespace zeus::cli {
namespace {

// "± 2.3 J"
std::string Sigma(Joules sigma) { return "± " + EnergyText(sigma); }

std::string Period(Seconds period) {
  const double milliseconds = period.count() * 1e3;
  return fmt::format("{:.{}f} ms", milliseconds, milliseconds < 10 ? 1 : 0);
}

std::string SourceText(const EnergyEstimate& estimate) {
  switch (estimate.source) {
    case EnergySource::kCounter:
      return "the device's own energy counter, its value at the end less that at the start";
    case EnergySource::kIntegrated:
      return "readings of the device's power, summed over time: it has no energy counter";
    case EnergySource::kModel:
      break;
  }
  return "an estimate, not a reading of this device";
}

std::string UpdatesText(const EnergyEstimate& estimate) {
  std::string text = fmt::format("{} new value{} of the sensor in that time", estimate.updates,
                                 estimate.updates == 1 ? "" : "s");
  if (estimate.update_period.count() > 0)
    text += fmt::format(", which shows one every {}", Period(estimate.update_period));
  return text + fmt::format("; it observed {:.0f} % of the time", 100 * estimate.coverage);
}

std::string StageText(Measurement::Stage stage) {
  return stage == Measurement::Stage::kRefined
             ? "refined: Zeus waited until the sensor had shown the end of the command"
             : "immediate: the sensor had not yet shown the end of the command (--refine always "
               "waits for it)";
}

// Both parts of sigma, which add as squares.
std::string SigmaText(const EnergyEstimate& estimate, bool calibrated) {
  const double all = estimate.sigma.value();
  const double shared = std::min(estimate.shared_sigma.value(), all);
  const Joules own(std::sqrt(all * all - shared * shared));
  return fmt::format(
      "{} = {} of the sensor itself, the same in every run ({}), and {} of this run: what happened "
      "between updates at its start and end, and in gaps; their squares add",
      Sigma(estimate.sigma), Sigma(Joules(shared)),
      calibrated ? "measured on this board by zeus calibrate"
                 : "published measurements of such boards; zeus calibrate measures this one",
      Sigma(own));
}

void ExplainDevice(const RunReport& report, const Run& mean, const DeviceMeasurement& device,
                   std::string& text) {
  const auto identity = std::ranges::find(report.devices, device.device, &DeviceIdentity::device);
  const bool known = identity != report.devices.end();
  text += fmt::format("  {}{}\n", device.device,
                      known && !identity->model.empty() ? ", " + identity->model : "");
  if (!device.energy.ok()) {
    text += fmt::format("    no number: {}\n", device.energy.error().message);
    return;
  }
  const EnergyEstimate& estimate = device.energy.value();
  text += fmt::format("    energy: {}\n", SourceText(estimate));
  text += fmt::format("    updates: {}\n", UpdatesText(estimate));
  text += fmt::format("    stage: {}\n", StageText(mean.measurement.stage));
  text += fmt::format("    {}\n", SigmaText(estimate, known && identity->calibrated));
  text += "    power: energy divided by time\n";
  if (estimate.flags.Has(MeasurementFlag::kShared))
    text += fmt::format(
        "    of this command: {:.1f} J, the part of the energy that is left when other processes "
        "and windows that Zeus measures have theirs\n",
        estimate.attributed.value());
  if (const auto net = ComputeNetEnergy(device, mean.measurement.time, report.idle)) {
    const auto idle = std::ranges::find(report.idle, device.device, &IdlePower::device);
    text += fmt::format("    above idle: energy less {:.1f} W of idle power {} times the time\n",
                        idle->power.value(),
                        idle->sigma.value() > 0 ? "measured before the command" : "as given");
  }
  for (const std::string_view flag : estimate.flags.Names())
    text += fmt::format("    flag {}: {}\n", flag, FlagMeaning(flag));
}

}  // namespace

std::string ToExplanation(const RunReport& report) {
  const Run mean = MeanOf(report.runs);
  std::string text = "where the numbers come from\n";
  text +=
      "  time: of the machine's monotonic clock, from just before the command is started until it "
      "has ended\n";
  if (report.runs.size() > 1)
    text += fmt::format(
        "  several runs: numbers are means of {}; ± stays that of one measurement, spread is the "
        "standard deviation between runs\n",
        report.runs.size());
  for (const DeviceMeasurement& device : mean.measurement.devices)
    ExplainDevice(report, mean, device, text);
  const Measurement::Total total = mean.measurement.Sum();
  if (!total.contains.empty())
    text += fmt::format(
        "  total: the sum of {}{}; the boards' errors are independent, so squares of ± add\n",
        fmt::join(total.contains, ", "),
        total.missing.empty() ? "" : fmt::format(", without {}", fmt::join(total.missing, ", ")));
  return text;
}

}  // namespace zeus::cli
