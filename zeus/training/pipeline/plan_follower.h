#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/stage_clocks.h"
#include "zeus/plan/plan_service.h"
#include "zeus/training/pipeline/clock_setter.h"

namespace zeus {

// Sets the clocks of one stage as a plan says while its instructions come, and compares how long
// they take with the plan. One owner; setter and clock must outlive it.
class PlanFollower {
 public:
  // `highest` is the clock of a stage that does not follow its plan.
  PlanFollower(ClockSetter& setter, Clock& clock, int stage, Hertz highest);

  // From the next instruction on, which must be the first of an iteration.
  void Adopt(const CurrentPlan& current);
  const std::optional<CurrentPlan>& current() const { return current_; }
  // A stage that is the straggler itself keeps to the plan that it was slow with.
  void KeepUnpaced(bool keep);

  void Begin(std::string_view instruction);
  void End();
  struct Iteration {
    double slowdown = 1;  // How many times longer than planned its instructions took.
    Seconds time{0};      // From its first instruction on.
  };
  Iteration EndIteration();

  // The program does not follow the plan.
  const std::optional<Error>& trouble() const { return trouble_; }
  // What an iteration takes where nobody straggles.
  Seconds unpaced_time() const;

 private:
  void Follow(const CurrentPlan& plan);
  void GiveUp(Error error);
  void Ask(Hertz clock);

  ClockSetter& setter_;
  Clock& clock_;
  const std::size_t stage_;
  const Hertz highest_;
  std::optional<CurrentPlan> current_;
  std::optional<CurrentPlan> unpaced_;  // The last plan that was made for no straggler.
  bool keeps_unpaced_ = false;
  pipeline::StageClocks clocks_{{}};
  std::optional<TimePoint> begun_;            // The open instruction.
  std::optional<TimePoint> iteration_begun_;  // Nullopt before its first instruction.
  Seconds busy_{0};
  std::optional<Error> trouble_;
  bool complained_ = false;
};

}  // namespace zeus
