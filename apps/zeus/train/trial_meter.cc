#include "apps/zeus/train/trial_meter.h"

#include <algorithm>
#include <cmath>

namespace zeus::cli {
namespace {

// Numbers that no metric has, for the service takes none that is not finite: a training that
// diverged is as bad as can be.
constexpr double kWorst = 1e308;

}  // namespace

TrialMeter::TrialMeter(const Parts& parts, const Trial& trial, const JobSpec& spec)
    : parts_(parts), spec_(spec) {
  last_.job_id = trial.job_id;
  last_.trial = trial.number;
}

Status TrialMeter::Begin() {
  begun_ = parts_.clock.Now();
  if (parts_.devices == nullptr) return Ok();
  meter_.emplace(parts_.devices->NewMeter());
  return meter_->Begin("trial");
}

Result<std::optional<TrialReport>> TrialMeter::Epoch(const EpochReport& said) {
  TrialReport report{.job_id = last_.job_id, .trial = last_.trial};
  report.epoch = said.epoch.value_or(last_.epoch + 1);
  if (report.epoch <= last_.epoch) return std::optional<TrialReport>();
  report.metric =
      std::isfinite(said.metric) ? said.metric : (spec_.higher_is_better ? -kWorst : kWorst);
  ZEUS_RETURN_IF_ERROR(Measure(said, report));
  // Before the limit moves on: this epoch ran at the old one.
  report.power_limit = said.power_limit;
  if (parts_.limit != nullptr) {
    if (!report.power_limit) report.power_limit = parts_.limit->in_force();
    parts_.limit->EpochEnded();
  }
  MeasureEpoch(said, report);
  // The first epoch contains the start of the program.
  steady_ = parts_.limit == nullptr || parts_.limit->settled();
  last_ = report;
  return std::optional(report);
}

Status TrialMeter::Measure(const EpochReport& said, TrialReport& report) {
  Joules energy{};
  if (meter_ && !said.energy) {
    const auto reading = meter_->Peek();
    if (!reading.ok() && spec_.eta > 0) return reading.error().While("measure the run");
    if (reading.ok()) energy = reading.value().energy;
  } else if (!said.energy && spec_.eta > 0) {
    return Error{ErrorCode::kUnavailable,
                 "nothing tells the energy of the run: there is no GPU to measure, and the command "
                 "reports no energy_joules (--eta 0 needs none)"};
  }
  // Estimates of what the sensor has not shown yet may be taken back; energy cannot.
  report.energy = std::max(said.energy.value_or(energy), last_.energy);
  report.time = std::max(said.time.value_or(Seconds(parts_.clock.Now() - begun_)), last_.time);
  return Ok();
}

void TrialMeter::MeasureEpoch(const EpochReport& said, TrialReport& report) const {
  if (said.epoch_time && said.epoch_energy) {
    report.epoch_time = said.epoch_time;
    report.epoch_energy = said.epoch_energy;
  } else if (const auto best = parts_.limit != nullptr && !said.energy ? parts_.limit->EpochAtBest()
                                                                       : std::nullopt) {
    report.epoch_time = best->time_per_step;
    report.epoch_energy = best->energy_per_step;
  } else if (steady_ && last_.epoch > 0) {
    const double epochs = report.epoch - last_.epoch;
    report.epoch_time = (report.time - last_.time) / epochs;
    report.epoch_energy = (report.energy - last_.energy) / epochs;
  }
}

}  // namespace zeus::cli
