#include "apps/zeus/train/train_display.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "apps/zeus/command_line.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/quantity_text.h"
#include "zeus/device/knobs/knob_repair.h"

namespace zeus::cli {
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

}  // namespace zeus::cli
