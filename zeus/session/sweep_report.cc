#include "zeus/session/sweep_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/statistics.h"
#include "zeus/optimizer/power_limit/selector.h"

namespace zeus {
namespace {

// The mean of values that have a sigma each, with the scatter that shows between them.
struct WeighedMean {
  double value = 0;
  double sigma = 0;
};
WeighedMean MeanOfSlices(const std::vector<WeighedMean>& values) {
  std::vector<double> plain;
  double variance = 0;
  for (const WeighedMean& one : values) {
    plain.push_back(one.value);
    variance += one.sigma * one.sigma;
  }
  const SampleSummary summary = Summarize(plain);
  const double own = std::sqrt(variance) / static_cast<double>(values.size());
  return {summary.mean, values.size() > 1 ? std::hypot(own, summary.StandardError()) : own};
}

std::optional<SweepRow::PerStep> PerStepOf(const std::vector<const MeasuredSlice*>& slices) {
  std::vector<WeighedMean> times;
  std::vector<WeighedMean> energies;
  double steps = 0;
  for (const MeasuredSlice* slice : slices) {
    if (!slice->rate) return std::nullopt;
    const SliceReading& reading = slice->reading;
    const StepRate& rate = *slice->rate;
    const Watts power = reading.energy / reading.time;
    const Watts power_sigma = reading.sigma / reading.time;
    times.push_back({rate.time_per_step.count(), rate.sigma.count()});
    energies.push_back(
        {(power * rate.time_per_step).value(),
         std::hypot((power_sigma * rate.time_per_step).value(), (power * rate.sigma).value())});
    steps += rate.steps;
  }
  const WeighedMean time = MeanOfSlices(times);
  const WeighedMean energy = MeanOfSlices(energies);
  return SweepRow::PerStep{.steps = steps,
                           .time = Seconds(time.value),
                           .time_sigma = Seconds(time.sigma),
                           .energy = Joules(energy.value),
                           .energy_sigma = Joules(energy.sigma)};
}

SweepRow RowOf(const Setting& setting, const std::vector<const MeasuredSlice*>& slices) {
  SweepRow row{.setting = setting, .slices = slices.size()};
  std::vector<WeighedMean> powers;
  for (const MeasuredSlice* slice : slices) {
    const SliceReading& reading = slice->reading;
    row.time += reading.time;
    powers.push_back(
        {(reading.energy / reading.time).value(), (reading.sigma / reading.time).value()});
  }
  const WeighedMean power = MeanOfSlices(powers);
  row.power = Watts(power.value);
  row.power_sigma = Watts(power.sigma);
  row.per_step = PerStepOf(slices);
  return row;
}

bool KnowsAllSteps(const SweepReport& report) {
  return !report.rows.empty() && std::ranges::all_of(report.rows, [](const SweepRow& row) {
    return row.per_step.has_value();
  });
}

double SharedError(const std::vector<MeasuredSlice>& slices) {
  Joules energy(0);
  Joules shared(0);
  for (const MeasuredSlice& slice : slices) {
    energy += slice.reading.energy;
    shared += slice.reading.shared_sigma;
  }
  return energy > Joules(0) ? shared / energy : 0;
}

SettingChoice Choose(const Selector& selector, const Profile& profile) {
  const auto chosen = selector.select(profile);
  if (chosen.ok()) return {.objective = selector.name, .row = chosen.value()};
  return {.objective = selector.name, .reason = chosen.error().message};
}

}  // namespace

void Evaluate(SweepReport& report, const ProfileObjectives& objectives) {
  report.rows.clear();
  report.choices.clear();
  for (std::size_t i = 0; i < report.settings.size(); ++i) {
    std::vector<const MeasuredSlice*> slices;
    for (const MeasuredSlice& slice : report.slices)
      if (slice.setting == i && slice.reading.time > Seconds(0)) slices.push_back(&slice);
    if (!slices.empty()) report.rows.push_back(RowOf(report.settings[i], slices));
  }
  report.shared_error = SharedError(report.slices);
  // A choice among some of the settings would look like one among all of them.
  if (!KnowsAllSteps(report) || report.rows.size() < report.settings.size()) return;
  const Profile profile = ToProfile(report);
  report.choices.push_back(Choose(ZeusCost(objectives.eta), profile));
  report.choices.push_back(Choose(Energy(), profile));
  report.choices.push_back(Choose(Time(), profile));
  if (objectives.max_slowdown)
    report.choices.push_back(Choose(MaxSlowdownConstraint(*objectives.max_slowdown), profile));
}

bool KnowsSteps(const SweepReport& report) {
  return std::ranges::any_of(report.rows,
                             [](const SweepRow& row) { return row.per_step.has_value(); });
}

Profile ToProfile(const SweepReport& report) {
  Profile profile{.knob = report.knob,
                  .max_power = report.max_power,
                  .shared_error = report.shared_error,
                  .complete = report.complete};
  profile.context.job = report.label;
  profile.context.driver = report.driver;
  profile.context.date = report.started;
  profile.context.devices = static_cast<int>(report.devices.size());
  for (const JobKnob::Device& device : report.devices) {
    profile.context.device_model = device.model;
    if (!device.uuid.empty()) profile.context.uuids.push_back(device.uuid);
  }
  if (!KnowsAllSteps(report)) return profile;
  for (const SweepRow& row : report.rows) {
    profile.points.push_back({.setting = row.setting,
                              .steps = static_cast<std::int64_t>(std::llround(row.per_step->steps)),
                              .time_per_step = row.per_step->time,
                              .time_sigma = row.per_step->time_sigma,
                              .energy_per_step = row.per_step->energy,
                              .energy_sigma = row.per_step->energy_sigma});
  }
  return profile;
}

std::vector<std::string> ChosenBy(const SweepReport& report, std::size_t row) {
  std::vector<std::string> objectives;
  for (const SettingChoice& choice : report.choices)
    if (choice.row == row) objectives.push_back(choice.objective);
  return objectives;
}

}  // namespace zeus
