#include "zeus/session/profile_report.h"

#include <algorithm>

#include "zeus/optimizer/power_limit/selector.h"
#include "zeus/optimizer/power_limit/setting_record.h"

namespace zeus {
namespace {

using Slice = PowerLimitOptimizer::MeasuredSlice;

std::optional<SettingRow::PerStep> AmountsPerStep(const Setting& setting, const Profile& profile,
                                                  const std::vector<const Slice*>& slices) {
  double steps = 0;
  for (const Slice* slice : slices) {
    if (!slice->rate) return std::nullopt;
    steps += slice->rate->steps;
  }
  const auto point = std::ranges::find(profile.points, setting, &ProfilePoint::setting);
  if (point == profile.points.end()) return std::nullopt;
  return SettingRow::PerStep{.steps = steps,
                             .time = point->time_per_step,
                             .time_sigma = point->time_sigma,
                             .energy = point->energy_per_step,
                             .energy_sigma = point->energy_sigma};
}

SettingRow MakeSettingRow(const Setting& setting, const Profile& profile,
                          const std::vector<const Slice*>& slices) {
  SettingRow row{.setting = setting, .slices = slices.size()};
  std::vector<WeighedMean> powers;
  for (const Slice* slice : slices) {
    const SliceReading& reading = slice->reading;
    row.time += reading.time;
    powers.push_back(
        {(reading.energy / reading.time).value(), (reading.sigma / reading.time).value()});
  }
  const WeighedMean power = MeanOfSlices(powers);
  row.power = Watts(power.value);
  row.power_sigma = Watts(power.sigma);
  row.per_step = AmountsPerStep(setting, profile, slices);
  return row;
}

SettingChoice Choose(const Selector& selector, const Profile& profile) {
  const auto chosen = selector.select(profile);
  if (chosen.ok()) return {.objective = selector.name, .row = chosen.value()};
  return {.objective = selector.name, .reason = chosen.error().message};
}

}  // namespace

void FillReport(ProfileReport& report, const PowerLimitOptimizer& optimizer,
                const ProfileObjectives& objectives) {
  report.settings = optimizer.settings();
  report.slices = optimizer.Slices();
  report.profile = optimizer.profile();
  report.complete = report.profile.complete;
  report.shared_error = report.profile.shared_error;
  report.rows.clear();
  report.choices.clear();
  for (std::size_t i = 0; i < report.settings.size(); ++i) {
    std::vector<const Slice*> slices;
    for (const Slice& slice : report.slices)
      if (slice.setting == i && slice.reading.time > Seconds(0)) slices.push_back(&slice);
    if (!slices.empty())
      report.rows.push_back(MakeSettingRow(report.settings[i], report.profile, slices));
  }
  if (!KnowsAllSteps(report)) report.profile.points.clear();
  // A choice among some of the settings would look like one among all of them.
  if (!KnowsAllSteps(report) || report.rows.size() < report.settings.size()) return;
  report.choices.push_back(Choose(ZeusCost(objectives.eta), report.profile));
  report.choices.push_back(Choose(Energy(), report.profile));
  report.choices.push_back(Choose(Time(), report.profile));
  if (objectives.max_slowdown)
    report.choices.push_back(
        Choose(MaxSlowdownConstraint(*objectives.max_slowdown), report.profile));
}

bool KnowsSteps(const ProfileReport& report) {
  return std::ranges::any_of(report.rows,
                             [](const SettingRow& row) { return row.per_step.has_value(); });
}

bool KnowsAllSteps(const ProfileReport& report) {
  return !report.rows.empty() && std::ranges::all_of(report.rows, [](const SettingRow& row) {
    return row.per_step.has_value();
  });
}

std::vector<std::string> ChosenBy(const ProfileReport& report, std::size_t row) {
  std::vector<std::string> objectives;
  for (const SettingChoice& choice : report.choices)
    if (choice.row == row) objectives.push_back(choice.objective);
  return objectives;
}

}  // namespace zeus
