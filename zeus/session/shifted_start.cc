#include "zeus/session/shifted_start.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "zeus/base/wall_time_text.h"
#include "zeus/job/memory_repository.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kLongestNap = 1s;  // The caller's wish to stop has no descriptor.
// A start that moves by less than this is not worth a new sentence.
constexpr Seconds kSameStart = 1min;
// Sensors of GPUs are wrong by about so much; runs do not tell their own error.
constexpr double kEnergyError = 0.03;

}  // namespace

ShiftedStart::ShiftedStart(const Parts& parts, const ShiftOptions& options, std::string job,
                           std::string gpu_model)
    : parts_(parts),
      options_(options),
      job_(std::move(job)),
      gpu_model_(std::move(gpu_model)),
      first_moment_(parts.clock.WallNow()) {}

Result<StartAdvice> ShiftedStart::Advise() {
  if (!std::exchange(estimated_, true)) {
    if (const auto trials = AllTrials(parts_.service, job_); trials.ok())
      estimate_ = EstimateRun(trials.value(), gpu_model_);
  }
  return AdviseStart(parts_.forecasts, options_.wish, estimate_, first_moment_,
                     parts_.clock.WallNow());
}

void ShiftedStart::Announce(const StartAdvice& advice, WallTime now) {
  const WallTime start = advice.plan.start;
  const Seconds moved = announced_ ? Seconds(start - *announced_) : Seconds::max();
  if (moved < kSameStart && moved > -kSameStart) return;
  // A start that was waited for is not news.
  if (announced_ && start <= now) return;
  announced_ = start;
  parts_.listener.OnStartPlanned(advice, now);
}

void ShiftedStart::Wait() {
  for (;;) {
    const Result<StartAdvice> advice = Advise();
    const WallTime now = parts_.clock.WallNow();
    if (advice.ok()) {
      Announce(advice.value(), now);
      if (advice.value().plan.reason == ShiftReason::kGain)
        promised_percent_ = advice.value().plan.expected.percent();
    } else if (!std::exchange(trouble_told_, true)) {
      parts_.listener.OnShiftTrouble(advice.error(), waiter_.plan().has_value());
    }
    const auto next =
        waiter_.Decide(now, advice.ok() ? Result<StartPlan>(advice.value().plan) : advice.error());
    if (!next || !RestUntil(*next)) return;
  }
}

bool ShiftedStart::RestUntil(WallTime time) {
  for (;;) {
    if (parts_.stop_requested()) return false;
    const Seconds left = time - parts_.clock.WallNow();
    if (left <= Seconds(0)) return true;
    // Short rests: a clock that is set, or a machine that slept, is noticed.
    parts_.clock.SleepFor(std::min(left, kLongestNap));
  }
}

void ShiftedStart::NoteRun(const Trial& trial) {
  if (!(trial.time > Seconds(0)) || !(trial.energy > Joules(0))) return;
  const WallTime end = trial.ended_at ? *trial.ended_at : Later(trial.started_at, trial.time);
  run_.pieces.push_back(
      {.begin = trial.started_at, .end = std::max(end, trial.started_at), .energy = trial.energy});
  run_.sigma = Joules(std::hypot(run_.sigma.value(), kEnergyError * trial.energy.value()));
}

std::optional<ShiftReport> ShiftedStart::Judge() const {
  if (run_.pieces.empty()) return std::nullopt;
  parts_.actual.Refresh();
  ShiftReport report = JudgeShift(parts_.actual, options_.wish.goal, first_moment_, run_);
  report.promised_percent = promised_percent_;
  return report;
}

}  // namespace zeus
