#include "zeus/carbon/shift_report.h"

#include <fmt/format.h>

#include <cmath>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

// The same energy without pauses, from another moment on.
EnergyUse MovedTo(WallTime first_moment, const EnergyUse& run) {
  EnergyUse moved{.pieces = {}, .sigma = run.sigma};
  WallTime time = first_moment;
  for (const EnergyPiece& piece : run.pieces) {
    const auto length = piece.end - piece.begin;
    moved.pieces.push_back({.begin = time, .end = time + length, .energy = piece.energy});
    time += length;
  }
  return moved;
}

struct Judged {
  ShiftReport::Amount amount{};
  Joules missing{};
  std::vector<std::string> notes{};
};

Judged Judge(const CarbonAccounting& accounting, ShiftGoal goal, const EnergyUse& use) {
  const CarbonReport report = accounting.Of(use);
  if (goal == ShiftGoal::kCarbon && report.emissions)
    return {{report.emissions->amount.value(), report.emissions->sigma.value()},
            report.emissions->accounted.missing,
            report.emissions->accounted.notes};
  if (goal == ShiftGoal::kPrice && report.cost)
    return {{report.cost->amount.value(), report.cost->sigma.value()},
            report.cost->accounted.missing,
            report.cost->accounted.notes};
  return {.missing = use.Sum()};
}

Json AmountJson(const std::optional<ShiftReport::Amount>& amount) {
  if (!amount) return {};
  return {{"amount", amount->value}, {"sigma", amount->sigma}};
}

}  // namespace

ShiftReport JudgeShift(const CarbonAccounting& accounting, ShiftGoal goal, WallTime first_moment,
                       const EnergyUse& run) {
  ShiftReport report{.goal = goal, .unit = accounting.UnitOf(goal), .first_moment = first_moment};
  if (run.pieces.empty() || !(run.Sum() > Joules(0))) {
    report.unknown_because = "the energy of the run is not known";
    return report;
  }
  report.started = run.pieces.front().begin;
  for (std::size_t i = 1; i < run.pieces.size(); ++i)
    report.paused += run.pieces[i].begin - run.pieces[i - 1].end;
  Judged actual = Judge(accounting, goal, run);
  Judged at_once = Judge(accounting, goal, MovedTo(first_moment, run));
  report.notes = actual.notes;
  for (const std::string& note : at_once.notes)
    if (std::ranges::find(report.notes, note) == report.notes.end()) report.notes.push_back(note);
  if (actual.missing == Joules(0)) report.actual = actual.amount;
  if (at_once.missing == Joules(0)) report.at_once = at_once.amount;
  if (!report.actual || !report.at_once) {
    report.unknown_because =
        fmt::format("the {} is not known for {} of {} at the {}",
                    goal == ShiftGoal::kCarbon ? "carbon intensity" : "price",
                    EnergyText(report.actual ? at_once.missing : actual.missing),
                    EnergyText(run.Sum()), report.actual ? "first moment" : "time of the run");
    return report;
  }
  // Both have the same energy: its error scales the difference.
  const double saved = report.at_once->value - report.actual->value;
  report.saved =
      ShiftReport::Amount{.value = saved, .sigma = std::abs(saved) * (run.sigma / run.Sum())};
  return report;
}

std::string AmountText(const ShiftReport::Amount& amount, const std::string& unit) {
  if (unit == "g") return WithSigma(amount.value, amount.sigma, "g") + " CO2e";
  // Currencies have no prefixes, so small sums get more decimals: three digits that say something.
  constexpr int kDecimals = 4;
  constexpr int kMostDecimals = 12;
  int decimals = kDecimals;
  for (double size = std::abs(amount.value); size > 0 && size < 0.01 && decimals < kMostDecimals;
       size *= 10)
    ++decimals;
  return fmt::format("{} {}",
                     amount.sigma > 0 ? FixedWithSigma(amount.value, amount.sigma, decimals)
                                      : fmt::format("{:.{}f}", amount.value, decimals),
                     unit);
}

std::string ToSentence(const ShiftReport& report) {
  const Seconds waited = report.started - report.first_moment;
  std::string text = waited > Seconds(1) ? fmt::format("the run began {} later", TimeText(waited))
                                         : "the run began at once";
  if (report.paused > Seconds(1)) text += fmt::format(", paused for {}", TimeText(report.paused));
  if (!report.saved)
    return fmt::format("{}; what that saved is not known: {}", text, report.unknown_because);
  text += fmt::format(": {}", AmountText(*report.actual, report.unit));
  if (waited <= Seconds(1) && report.paused <= Seconds(1)) return text;
  text +=
      fmt::format(" instead of {} at the first moment", AmountText(*report.at_once, report.unit));
  if (report.at_once->value > 0) {
    const double percent = -100 * report.saved->value / report.at_once->value;
    text += fmt::format(
        ", {}", ChangeWithSigma(percent, 100 * report.saved->sigma / report.at_once->value));
    if (report.promised_percent)
      text += fmt::format(" (the forecast promised {:+.1f} %)", -*report.promised_percent);
  }
  return text;
}

Json ToJson(const ShiftReport& report) {
  return {{"goal", report.goal == ShiftGoal::kCarbon ? "carbon" : "price"},
          {"unit", report.unit},
          {"first_moment", ToText(report.first_moment)},
          {"started", report.started == WallTime{} ? Json() : Json(ToText(report.started))},
          {"paused_seconds", report.paused.count()},
          {"actual", AmountJson(report.actual)},
          {"at_once", AmountJson(report.at_once)},
          {"saved", AmountJson(report.saved)},
          {"promised_percent", report.promised_percent ? Json(*report.promised_percent) : Json()},
          {"unknown_because", report.unknown_because},
          {"notes", report.notes}};
}

}  // namespace zeus
