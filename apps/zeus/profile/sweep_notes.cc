// Sentences about what did not go as planned in a sweep.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/zeus/profile/sweep_report.h"

namespace zeus::cli {
namespace {

std::string NoProgress(const SweepReport& report) {
  return report.progress == ProgressSource::kFile
             ? "the progress file never changed while the command ran, so nothing was measured: "
               "its last line must be a number, or it must get a line per step"
             : "nothing in the command's output matched --progress, so nothing was measured: note "
               "that many programs print other lines, or later, when they do not write to a "
               "terminal";
}

std::string EndedEarly(const SweepReport& report, const SweepEnd& end) {
  const auto slices = static_cast<double>(report.settings.size() * report.plan.rounds.value_or(1));
  const Seconds needed = end.before_sweep + slices * (report.plan.warmup + report.plan.slice);
  return fmt::format(
      "the command {} after {:.1f} s, before the sweep was done: it should run at least {:.0f} s "
      "({:.1f} s until its first step, {} slices of {:g} s)",
      end.interrupted ? "was interrupted" : "ended", end.ran.count(), std::ceil(needed.count()),
      end.before_sweep.count(), slices, Seconds(report.plan.warmup + report.plan.slice).count());
}

std::string TooFewSteps(const SweepReport& report) {
  return fmt::format(
      "throughput is unknown where less than two changes of the progress were seen "
      "in a slice: make --slice longer than {:g} s",
      report.plan.slice.count());
}

}  // namespace

std::vector<std::string> NotesOn(const SweepReport& report) {
  const SweepEnd& end = report.end;
  std::vector<std::string> notes;
  if (end.trouble) notes.push_back("the sweep was given up: " + end.trouble->message);
  for (const PowerLimitOptimizer::LeftOut& left_out : end.left_out)
    notes.push_back(
        fmt::format("a slice at {} is left out: {}", ToText(left_out.setting), left_out.reason));
  if (report.settings.size() == 1) {
    notes.push_back(fmt::format("the {} was tried at {} only: there is nothing to compare",
                                report.knob_name, ToText(report.settings.front())));
  }
  if (end.waiting && report.progress != ProgressSource::kNone) {
    notes.push_back(NoProgress(report));
    return notes;
  }
  // Without a number of rounds, one is enough.
  const bool early = !report.complete && !end.trouble && (end.command_ended || end.interrupted) &&
                     (report.plan.rounds || report.rows.size() < report.settings.size());
  if (early) notes.push_back(EndedEarly(report, end));
  if (report.progress == ProgressSource::kNone) {
    notes.emplace_back(
        "throughput is unknown, so no limit is called best: count the command's steps with "
        "--progress 'step (\\d+)' or --progress-file FILE");
  } else if (std::ranges::any_of(report.rows, [](const SweepRow& row) { return !row.per_step; })) {
    notes.push_back(TooFewSteps(report));
  }
  if (report.kept)
    notes.push_back(fmt::format("{} is set for the rest of the command", ToText(*report.kept)));
  return notes;
}

}  // namespace zeus::cli
