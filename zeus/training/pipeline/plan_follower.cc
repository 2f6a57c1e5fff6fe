#include "zeus/training/pipeline/plan_follower.h"

#include <algorithm>
#include <utility>

#include "zeus/base/log.h"

namespace zeus {

PlanFollower::PlanFollower(ClockSetter& setter, Clock& clock, int stage, Hertz highest)
    : setter_(setter), clock_(clock), stage_(static_cast<std::size_t>(stage)), highest_(highest) {}

void PlanFollower::Adopt(const CurrentPlan& current) {
  current_ = current;
  if (!current.pace) unpaced_ = current;
  Follow(keeps_unpaced_ && unpaced_ ? *unpaced_ : current);
}

void PlanFollower::KeepUnpaced(bool keep) {
  if (!current_ || std::exchange(keeps_unpaced_, keep) == keep) return;
  Follow(keep && unpaced_ ? *unpaced_ : *current_);
}

void PlanFollower::Follow(const CurrentPlan& plan) {
  trouble_.reset();
  if (stage_ >= plan.plan.stages.size())
    return GiveUp({ErrorCode::kInvalidArgument,
                   "the plan is of fewer stages than this job has: plan for this job"});
  clocks_ = pipeline::StageClocks(plan.plan.stages[stage_]);
  busy_ = Seconds(0);
  Ask(clocks_.Next());
}

void PlanFollower::Begin(std::string_view instruction) {
  if (!current_ || trouble_) return;
  const auto clock = clocks_.Begin(instruction);
  if (!clock.ok()) return GiveUp(clock.error());
  Ask(clock.value());
  begun_ = clock_.Now();
  if (!iteration_begun_) iteration_begun_ = begun_;
}

// The clock of the next instruction is asked for at once: what the driver takes to change it passes
// while the stage waits.
void PlanFollower::End() {
  if (!begun_) return;
  busy_ += clock_.Now() - *std::exchange(begun_, std::nullopt);
  if (current_ && !trouble_) Ask(clocks_.Next());
}

PlanFollower::Iteration PlanFollower::EndIteration() {
  Iteration iteration;
  if (const auto begun = std::exchange(iteration_begun_, std::nullopt))
    iteration.time = clock_.Now() - *begun;
  if (!current_ || trouble_) return iteration;
  const Seconds planned = clocks_.planned_time();
  if (planned > Seconds(0)) iteration.slowdown = busy_ / planned;
  busy_ = Seconds(0);
  if (const Status ended = clocks_.EndIteration(); !ended.ok()) GiveUp(ended.error());
  return iteration;
}

Seconds PlanFollower::unpaced_time() const {
  if (unpaced_) return unpaced_->plan.time;
  return current_ ? current_->baseline_time : Seconds(0);
}

void PlanFollower::GiveUp(Error error) {
  trouble_ = std::move(error);
  begun_.reset();
  if (!std::exchange(complained_, true))
    log::Warning("{}; until there is another plan this stage runs at its highest clock",
                 trouble_->message);
  setter_.Ask(highest_);
}

void PlanFollower::Ask(Hertz clock) {
  // A plan may have been made where higher clocks were allowed.
  if (clock > Hertz(0)) setter_.Ask(std::min(clock, highest_));
}

}  // namespace zeus
