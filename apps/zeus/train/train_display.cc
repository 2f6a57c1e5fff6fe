#include "apps/zeus/train/train_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/zeus/command_line.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/log.h"
#include "zeus/base/quantity_text.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/session/limit_follower.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kBar = 20;

}  // namespace

std::string ToLine(const TrainStatus& status, std::size_t width) {
  const double done = status.recurrences > 0 ? static_cast<double>(status.recurrence - 1) /
                                                   static_cast<double>(status.recurrences)
                                             : 0;
  const auto filled = static_cast<std::size_t>(std::clamp(done, 0.0, 1.0) * kBar);
  std::string line = fmt::format("[{}{}] {}/{}  batch size {}", std::string(filled, '#'),
                                 std::string(kBar - filled, '.'), status.recurrence,
                                 status.recurrences, status.batch_size);
  if (status.attempt > 0) line += fmt::format(" (try {})", status.attempt + 1);
  line += fmt::format("  epoch {}/{}", status.epoch, status.max_epochs);
  if (status.metric) line += fmt::format("  {:.4g} of {:.4g}", *status.metric, status.target);
  line += "  " + EnergyText(status.cost);
  if (status.bound) line += " of at most " + EnergyText(*status.bound);
  if (status.limit) line += fmt::format("  {:g} W", status.limit->value());
  if (status.waiting_for_service) line += "  (waiting for the server)";
  if (line.size() > width) line.resize(width);
  return line;
}

StatusLine::StatusLine(Wanted wanted)
    : active_(wanted == Wanted::kYes && DescribeTerminal(STDERR_FILENO).redraws) {}

void StatusLine::Show(const TrainStatus& status) {
  if (!active_) return;
  const std::string line = ToLine(status, DescribeTerminal(STDERR_FILENO).columns - 1);
  if (line == shown_) return;
  shown_ = line;
  std::fputs(fmt::format("\r\033[K{}", line).c_str(), stderr);
  std::fflush(stderr);
}

void StatusLine::Hide() {
  if (!active_ || shown_.empty()) return;
  shown_.clear();
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

namespace {

// The power limit of a run, or why there is none.
std::string LimitText(const TrialOutcome& outcome, ProfiledDevices* devices) {
  if (outcome.trial.power_limit) return fmt::format("{:g} W", outcome.trial.power_limit->value());
  if (devices == nullptr) return "no GPU to limit";
  if (!outcome.devices_answer) return "limit unknown";
  if (!outcome.limit_trouble) return "limits still being tried";
  // GPUs of several models have no common limit.
  return devices->knob().Current().ok() ? "limit left as it was" : "each GPU at its own limit";
}

}  // namespace

TrainDisplay::TrainDisplay(Sentences sentences)
    : sentences_(sentences),
      line_(sentences == Sentences::kQuiet ? StatusLine::Wanted::kNo : StatusLine::Wanted::kYes) {}

void TrainDisplay::Say(const std::string& sentence) const {
  if (sentences_ == Sentences::kShown) Show(stderr, fmt::format("zeus: {}\n", sentence));
}

void TrainDisplay::OnLimitRepaired(const KnobRepair& repair) { Say(ToText(repair)); }

void TrainDisplay::OnOrphanEnded(std::int64_t trial) {
  Say(fmt::format("trial {} had lost its runner and is ended", trial));
}

void TrainDisplay::OnRecurrenceKnown(unsigned recurrence) {
  Say(fmt::format("recurrence {} has reached the target in an earlier start of this task",
                  recurrence));
}

void TrainDisplay::OnTargetMissed(unsigned recurrence, unsigned runs) {
  Say(fmt::format("recurrence {} did not reach the target in {} run{}", recurrence, runs,
                  runs == 1 ? "" : "s"));
}

void TrainDisplay::OnTrialEnded(const TrialOutcome& outcome) {
  if (outcome.limit_trouble && !std::exchange(limit_trouble_said_, true))
    Say((outcome.limit_left_changed ? "the power limit is not what it was: "
                                    : "the power limit is left alone: ") +
        outcome.limit_trouble->message);
  const Trial& trial = outcome.trial;
  // Printed also when quiet: it is the reason why zeus ends.
  if (outcome.failure) Complain("zeus", {ErrorCode::kUnavailable, *outcome.failure});
  if (!line_.active()) return;
  Say(fmt::format("recurrence {}: batch size {}, {}, {}, {}: {}", trial.recurrence,
                  trial.batch_size, EnergyText(trial.energy), TimeText(trial.time),
                  LimitText(outcome, devices_), trial.reason));
}

void TrainDisplay::OnStartPlanned(const StartAdvice& advice, WallTime now) {
  Say(ToSentence(advice, now));
  for (const std::string& note : advice.notes) Say("  " + note);
}

void TrainDisplay::OnShiftTrouble(const Error& reason, bool planned) {
  line_.Hide();
  log::Warning("{}: {}", reason.message,
               planned ? "the run starts when it was planned" : "the run starts now");
}

void TrainDisplay::OnShiftJudged(const ShiftReport& report) {
  Say(ToSentence(report));
  for (const std::string& note : report.notes) Say("  " + note);
}

void TrainDisplay::OnFollowed(const FollowReport& report) { Say(ToSentence(report)); }

}  // namespace zeus::cli
