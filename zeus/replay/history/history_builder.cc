#include "zeus/replay/history/history_builder.h"

#include <fmt/format.h>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"

namespace zeus::replay {
namespace {

// Limits far beyond any run that keep sums over all runs finite.
constexpr double kMostSeconds = 1e12;
constexpr double kMostJoules = 1e18;
constexpr double kMostWatts = 1e9;

// Also rejects NaN.
Status CheckAmount(std::string_view field, double amount, double most) {
  if (amount >= 0 && amount <= most) return Ok();
  return FieldError(field, fmt::format("must be from 0 to {:g}: {:g}", most, amount));
}

Status CheckPower(std::string_view field, double power) {
  if (power > 0 && power <= kMostWatts) return Ok();
  return FieldError(field,
                    fmt::format("must be above 0 and at most {:g}: {:g}", kMostWatts, power));
}

Status CheckTrial(const Trial& trial) {
  if (trial.batch_size < 1)
    return FieldError("batch_size", fmt::format("must be at least 1: {}", trial.batch_size));
  if (trial.epochs < 0)
    return FieldError("epochs", fmt::format("must not be negative: {}", trial.epochs));
  ZEUS_RETURN_IF_ERROR(CheckAmount("time_seconds", trial.time.count(), kMostSeconds));
  ZEUS_RETURN_IF_ERROR(CheckAmount("energy_joules", trial.energy.value(), kMostJoules));
  ZEUS_RETURN_IF_ERROR(CheckPower("max_power_watts", trial.max_power.value()));
  if (trial.epochs > 0 && trial.time == Seconds(0))
    return FieldError("time_seconds", fmt::format("0 for {} epochs", trial.epochs));
  if (trial.power_limit) return CheckPower("power_limit_watts", trial.power_limit->value());
  return Ok();
}

// Reports are cumulative, so no value may decrease.
Status CheckOrder(const RunProgress& before, const RunProgress& now) {
  if (now.epochs < before.epochs)
    return FieldError("epochs",
                      fmt::format("{} after {} of the same run", now.epochs, before.epochs));
  if (now.time < before.time)
    return FieldError("time_seconds", fmt::format("{:g} after {:g} of the same run",
                                                  now.time.count(), before.time.count()));
  if (now.energy < before.energy)
    return FieldError("energy_joules", fmt::format("{:g} after {:g} of the same run",
                                                   now.energy.value(), before.energy.value()));
  return Ok();
}

}  // namespace

Result<RunProgress> ReadProgress(const JobEvent& event) {
  ZEUS_TRY(const int epochs, GetField<int>(event.detail, "epochs"));
  ZEUS_TRY(const double time, GetField<double>(event.detail, "time_seconds"));
  ZEUS_TRY(const double energy, GetField<double>(event.detail, "energy_joules"));
  ZEUS_TRY(const auto limit, GetOptionalField<double>(event.detail, "power_limit_watts"));
  if (epochs < 1) return FieldError("epochs", fmt::format("must be at least 1: {}", epochs));
  ZEUS_RETURN_IF_ERROR(CheckAmount("time_seconds", time, kMostSeconds));
  if (time == 0) return FieldError("time_seconds", fmt::format("0 for {} epochs", epochs));
  ZEUS_RETURN_IF_ERROR(CheckAmount("energy_joules", energy, kMostJoules));
  if (limit) ZEUS_RETURN_IF_ERROR(CheckPower("power_limit_watts", *limit));
  return RunProgress{.epochs = epochs,
                     .time = Seconds(time),
                     .energy = Joules(energy),
                     .limit = limit ? std::optional(Watts(*limit)) : std::nullopt};
}

Status HistoryBuilder::Add(Trial trial) {
  ZEUS_RETURN_IF_ERROR(CheckTrial(trial));
  const Run run{.epochs = trial.epochs, .ended = IsFinal(trial.status)};
  if (!runs_.try_emplace(trial.number, run).second)
    return FieldError("number", fmt::format("there is a trial {} already", trial.number));
  history_.trials.push_back(std::move(trial));
  return Ok();
}

Status HistoryBuilder::Add(JobEvent event) {
  if (event.kind == EventKind::kTrialReported && event.trial) {
    ZEUS_TRY(const RunProgress progress, ReadProgress(event));
    if (const auto found = runs_.find(*event.trial); found != runs_.end()) {
      Run& run = found->second;
      ZEUS_RETURN_IF_ERROR(CheckOrder(run.latest, progress));
      if (run.ended && progress.epochs > run.epochs)
        return FieldError(
            "epochs", fmt::format("{} of a run that ended after {}", progress.epochs, run.epochs));
      run.latest = progress;
    }
  }
  history_.events.push_back(std::move(event));
  return Ok();
}

Result<RunHistory> HistoryBuilder::Finish() && {
  if (history_.trials.empty())
    return Error{ErrorCode::kNotFound,
                 "no run is recorded (no line of record \"trial\"), so there is nothing to replay"};
  return std::move(history_);
}

}  // namespace zeus::replay
