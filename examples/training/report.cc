#include "examples/training/report.h"

#include <fmt/format.h>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/monitor/measurement.h"
#include "zeus/optimizer/power_limit/selector.h"

namespace zeus::examples {
namespace {

void PrintProfile(const Profile& profile, double eta) {
  fmt::print("\n{:<10} {:>9} {:>18} {:>8} {:>9}\n", "setting", "s/step", "J/step", "W", "cost J");
  for (const ProfilePoint& point : profile.points)
    fmt::print("{:<10} {:>9.4f} {:>18} {:>8.1f} {:>9.2f}\n", ToText(point.setting),
               point.time_per_step.count(), WithSigma(point.energy_per_step, point.energy_sigma),
               point.average_power().value(), StepCost(point, profile.max_power, eta).cost.value());
}

void PrintOptimizer(const Outcome& outcome, const Options& options) {
  for (const Profile& profile : outcome.profiles) PrintProfile(profile, options.eta);
  if (!outcome.profiles.empty()) fmt::print("\n");
  if (outcome.trouble) fmt::print("not optimised: {}\n", outcome.trouble->message);
  for (const Setting& setting : outcome.chosen) fmt::print("chosen: {}\n", ToText(setting));
  for (const SavingsReport& savings : outcome.savings)
    fmt::print("{}: {}\n", options.observe ? "observed" : "saved", ToText(savings));
}

Json ToJson(const TrainingAmounts& amounts) {
  Json json{{"steps", amounts.steps},
            {"time_seconds", amounts.time.count()},
            {"energy_joules", amounts.energy.value()},
            {"energy_sigma_joules", amounts.energy_sigma.value()}};
  if (amounts.cost) {
    json["cost_joules"] = amounts.cost->value();
    json["cost_sigma_joules"] = amounts.cost_sigma.value();
  }
  return json;
}

Json EpochsToJson(const Outcome& outcome) {
  Json epochs = Json::array();
  for (std::size_t i = 0; i < outcome.epochs.size(); ++i) {
    const LearnedEpoch& learned = outcome.epochs[i];
    Json epoch{{"epoch", i + 1},
               {"loss", learned.loss},
               {"accuracy", learned.metric},
               {"power_limit_watts", learned.limit.value()},
               {"graphics_clock_megahertz", learned.clock.ToMega()}};
    if (i < outcome.summary.records.size())
      epoch.update(ToJson(outcome.summary.records[i].amounts));
    epochs.push_back(std::move(epoch));
  }
  return epochs;
}

Json ToJson(const Profile& profile, double eta) {
  Json points = Json::array();
  for (const ProfilePoint& point : profile.points)
    points.push_back({{"setting", ToNumber(point.setting)},
                      {"steps", point.steps},
                      {"time_per_step_seconds", point.time_per_step.count()},
                      {"time_sigma_seconds", point.time_sigma.count()},
                      {"energy_per_step_joules", point.energy_per_step.value()},
                      {"energy_sigma_joules", point.energy_sigma.value()},
                      {"cost_joules", StepCost(point, profile.max_power, eta).cost.value()}});
  return {{"knob", KnobKindName(profile.knob)}, {"points", std::move(points)}};
}

Json ToJson(const JobUse& use) {
  return {{"time_seconds", use.time.count()},
          {"time_sigma_seconds", use.time_sigma.count()},
          {"energy_joules", use.energy.value()},
          {"energy_sigma_joules", use.energy_sigma.value()}};
}

Json ToJson(const SavingsReport& savings) {
  return {{"knob", KnobKindName(savings.knob)},     {"steps", savings.steps},
          {"original", ToNumber(savings.original)}, {"best", ToNumber(savings.best)},
          {"used", ToJson(savings.used)},           {"at_original", ToJson(savings.at_original)},
          {"at_best", ToJson(savings.at_best)},     {"change", ToJson(savings.change)}};
}

const char* StopReason(const Outcome& outcome) {
  return outcome.summary.reason ? StopReasonName(*outcome.summary.reason) : "unknown";
}

}  // namespace

void PrintOutcome(const Outcome& outcome, const Options& options) {
  PrintOptimizer(outcome, options);
  const TrainingAmounts& total = outcome.summary.amounts;
  fmt::print("total: {} epochs, {} steps, {:.1f} s, {}", outcome.summary.epochs, total.steps,
             total.time.count(), WithSigma(total.energy, total.energy_sigma));
  if (total.cost)
    fmt::print(", cost {} (eta {:g})", WithSigma(*total.cost, total.cost_sigma), options.eta);
  fmt::print("\nstopped: {}\n", StopReason(outcome));
  // A few late steps are the work of the system's scheduler and not worth a warning.
  constexpr double kLateShareToReport = 0.05;
  if (outcome.late_share > kLateShareToReport)
    fmt::print(
        "this CPU was slower than the GPU in {:.0f} % of the steps, which then seem longer: "
        "start the node with a smaller --time-scale\n",
        100 * outcome.late_share);
}

Json ToJson(const Outcome& outcome, const Options& options) {
  Json json{{"model", options.model},
            {"batch_size", options.batch_size},
            {"seed", options.seed},
            {"clock", options.clock},
            {"gpu", outcome.gpu},
            {"gpus", options.gpus},
            {"step_cost", options.step_cost},
            {"eta", options.eta},
            {"knob", options.knob},
            {"observe", options.observe},
            {"target", outcome.target},
            {"epochs", EpochsToJson(outcome)},
            {"step_losses", outcome.step_losses},
            {"total", ToJson(outcome.summary.amounts)},
            {"stopped", StopReason(outcome)},
            {"late_share", outcome.late_share}};
  Json profiles = Json::array();
  for (const Profile& profile : outcome.profiles) profiles.push_back(ToJson(profile, options.eta));
  json["profiles"] = std::move(profiles);
  Json chosen = Json::array();
  for (const Setting& setting : outcome.chosen) chosen.push_back(ToText(setting));
  json["chosen"] = std::move(chosen);
  if (outcome.trouble) json["trouble"] = outcome.trouble->message;
  Json savings = Json::array();
  for (const SavingsReport& report : outcome.savings) savings.push_back(ToJson(report));
  json["savings"] = std::move(savings);
  return json;
}

}  // namespace zeus::examples
