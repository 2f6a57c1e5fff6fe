#include "zeus/session/trial_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/log.h"

namespace zeus {
namespace {

// Shorter epochs are not worth a warning.
constexpr Seconds kLongestUnnoticedDoubt{1.0};

// Whether what a profile says can be true of what is seen: epochs at different limits differ less.
bool Alike(double said, double seen) {
  constexpr double kFactor = 2;
  return said * kFactor >= seen && said <= seen * kFactor;
}

}  // namespace

double FiniteMetric(double metric, const JobSpec& spec) {
  constexpr double kWorst = 1e308;
  if (std::isfinite(metric)) return metric;
  return spec.higher_is_better ? -kWorst : kWorst;
}

TrialMeter::TrialMeter(const Parts& parts, const Trial& trial, const JobSpec& spec)
    : parts_(parts), spec_(spec), baseline_(trial.role == RunRole::kBaseline) {
  last_.job_id = trial.job_id;
  last_.trial = trial.number;
}

Status TrialMeter::Begin() {
  if (parts_.devices != nullptr) {
    meter_.emplace(parts_.devices->NewMeter());
    ZEUS_RETURN_IF_ERROR(meter_->Begin("trial"));
    share_.emplace(parts_.devices->NewShare());
    share_->Begin();
  }
  begun_ = parts_.clock.Now();
  return Ok();
}

Result<std::optional<TrialReport>> TrialMeter::Epoch(const EpochReport& said, EpochTiming timing) {
  TrialReport report{.job_id = last_.job_id, .trial = last_.trial};
  report.epoch = said.epoch.value_or(last_.epoch + 1);
  const bool back = report.epoch < last_.epoch || (said.time && *said.time < last_.time) ||
                    (said.energy && *said.energy < last_.energy);
  if (back && !std::exchange(back_said_, true))
    log::Warning(
        "the command reports an earlier epoch, or less time or energy, than before: they count "
        "from its start, and what was reported stays");
  if (report.epoch <= last_.epoch) return std::optional<TrialReport>();
  report.metric = FiniteMetric(said.metric, spec_);
  ZEUS_RETURN_IF_ERROR(Measure(said, report));
  report.power_limit = said.power_limit;
  if (parts_.limit != nullptr) {
    timing == EpochTiming::kKnown ? parts_.limit->EpochEnded() : parts_.limit->EpochsLumped();
    // One that is only being tried says nothing about what was chosen.
    if (!report.power_limit && parts_.limit->limit_is_final())
      report.power_limit = parts_.limit->in_force();
  }
  // Without a GPU to look at, the command was asked to leave its limits alone.
  report.undisturbed = parts_.limit != nullptr ? !parts_.limit->turned() : baseline_;
  lumped_ = lumped_ || timing != EpochTiming::kKnown;
  MeasureEpoch(said, report);
  steady_ = parts_.limit == nullptr || parts_.limit->limit_is_final();
  last_ = report;
  // The first epoch contains the start of the program.
  if (!first_) first_ = report;
  if (timing == EpochTiming::kKnown || !timed_) timed_ = report;
  return std::optional(report);
}

double TrialMeter::OwnPart() {
  if (!share_) return 1;
  const double part = share_->OwnPart();
  if (share_->shared() && parts_.limit != nullptr) parts_.limit->Forget();
  return part;
}

Status TrialMeter::Measure(const EpochReport& said, TrialReport& report) {
  Joules energy{};
  if (meter_ && !said.energy) {
    const auto reading = meter_->Peek();
    if (!reading.ok() && spec_.eta > 0) return reading.error().While("measure the run");
    if (reading.ok()) energy = OwnPart() * reading.value().energy;
    // A device that is lost in the middle would make the run look cheap.
    if (spec_.eta > 0) ZEUS_RETURN_IF_ERROR(parts_.devices->CheckMeasured());
  } else if (!said.energy && spec_.eta > 0) {
    return Error{ErrorCode::kUnavailable,
                 "nothing tells the energy of the run: there is no GPU to measure, and the command "
                 "reports no energy_joules (--eta 0 needs none)"};
  }
  if (said.energy) (void)OwnPart();
  report.shared = share_ && share_->shared();
  // A run that is over before its sensor has shown anything.
  report.unmeasured = spec_.eta > 0 && !said.energy && !(energy > Joules(0));
  // Estimates of what the sensor has not shown yet may be taken back; energy cannot.
  report.energy = std::max(said.energy.value_or(energy), last_.energy);
  const TimePoint arrived = said.arrived.value_or(parts_.clock.Now());
  report.time = std::max(said.time.value_or(Seconds(arrived - begun_)), last_.time);
  return Ok();
}

std::optional<TrialMeter::OneEpoch> TrialMeter::MeanEpoch(const std::optional<TrialReport>& since,
                                                          const TrialReport& report) {
  if (!since || report.epoch <= since->epoch) return std::nullopt;
  const double epochs = report.epoch - since->epoch;
  return OneEpoch{.time = (report.time - since->time) / epochs,
                  .energy = (report.energy - since->energy) / epochs};
}

std::optional<TrialMeter::OneEpoch> TrialMeter::EpochAtBest(const TrialReport& report) {
  const auto seen = MeanEpoch(first_, report);
  const auto best = parts_.limit != nullptr && seen ? parts_.limit->EpochAtBest() : std::nullopt;
  if (!best) return std::nullopt;
  if (Alike(best->time_per_step.count(), seen->time.count()) &&
      Alike(best->energy_per_step.value(), seen->energy.value()))
    return OneEpoch{.time = best->time_per_step, .energy = best->energy_per_step};
  if (!std::exchange(doubted_, true) && seen->time > kLongestUnnoticedDoubt)
    log::Warning(
        "the profile of this job says {:.3g} J and {:.3g} s of an epoch, which takes {:.3g} J and "
        "{:.3g} s: it is not used to plan; if the job has changed, give it another --profiles "
        "folder",
        best->energy_per_step.value(), best->time_per_step.count(), seen->energy.value(),
        seen->time.count());
  return std::nullopt;
}

void TrialMeter::MeasureEpoch(const EpochReport& said, TrialReport& report) {
  std::optional<OneEpoch> epoch;
  if (said.epoch_time && said.epoch_energy) {
    epoch = OneEpoch{.time = *said.epoch_time, .energy = *said.epoch_energy};
  } else if (!said.energy) {
    epoch = EpochAtBest(report);
  }
  // After a lump the service, which sees the last epoch only, would take it for too short.
  if (!epoch && (steady_ || lumped_)) epoch = MeanEpoch(timed_, report);
  if (!epoch) return;
  report.epoch_time = epoch->time;
  report.epoch_energy = epoch->energy;
}

}  // namespace zeus
