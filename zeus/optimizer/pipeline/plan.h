#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/profile.h"

namespace zeus::pipeline {

// Time and energy of an iteration in which each computation runs at one of its measured points. The
// times are the measured ones, not rounded to ticks.
struct Evaluation {
  Seconds time{0};
  Joules energy{};                // Includes blocking power while stages wait.
  std::vector<Seconds> starts{};  // Start of each computation, as early as possible.
};

// Computation i runs at the point choice[i] of its kind. extra[i], if given, is a delay before it
// at blocking power, as from a change of the clock.
Evaluation Evaluate(const Problem& problem, std::span<const int> choice,
                    std::span<const Seconds> extra = {});

// Every computation at its fastest point.
std::vector<int> FastestChoice(const Problem& problem);
// Every computation at its highest clock, as hardware runs without a plan. This is the same as the
// fastest choice unless measurements are noisy or a power limit throttles.
std::vector<int> HighestClockChoice(const Problem& problem);

// An instruction of a stage with its clock.
struct PlannedInstruction {
  std::string instruction{};
  int microbatch = 0;
  int chunk = 0;
  Hertz clock{};  // Zero: the clock stays as it is.
  // Predicted from the measured times and energies.
  Seconds start{0};
  Seconds time{0};
  Joules energy{};
};

// A clock for every instruction of every stage.
struct PipelinePlan {
  Seconds deadline{0};     // The deadline that was asked for.
  Seconds time{0};         // Time of an iteration; never above the deadline.
  Joules energy{};         // Energy from the start to `waits_until`, including blocking power.
  Seconds waits_until{0};  // A straggler's pace; `time` if there is no straggler.
  Joules bound{};          // No plan within the deadline takes less energy (linear relaxation with
                           // times rounded to microseconds).
  int clock_changes = 0;   // Changes per iteration of all stages together, in a steady state.
  std::vector<std::vector<PlannedInstruction>> stages{};

  // By how much the energy exceeds the bound, relative to it: 0.003 is 0.3 %.
  double gap() const { return energy / bound - 1; }
};

// The JSON of plans and profiles in files and on the wire (docs/formats.md).

Json ToJson(const PipelinePlan& plan);
Result<PipelinePlan> PlanFromJson(const Json& json);

Json ToJson(const PipelineProfile& profile);
Result<PipelineProfile> ProfileFromJson(const Json& json);

// Follows the instructions of one stage through its plan, iteration by iteration. It sets no clocks
// itself. One owner.
class StageClocks {
 public:
  explicit StageClocks(std::vector<PlannedInstruction> plan) : plan_(std::move(plan)) {}

  // Returns the clock for the instruction that begins; zero: unchanged. Returns kInvalidArgument
  // when the plan has another instruction here, or none: the program does not follow the schedule
  // that was planned for.
  Result<Hertz> Begin(std::string_view instruction);

  // Returns the clock of the instruction that will begin next, in this iteration or the next one.
  Hertz Next() const;

  // Ends the iteration and goes back to the first instruction. Returns kInvalidArgument when
  // instructions of the plan were missing.
  Status EndIteration();

  // Planned time of the instructions that have begun in this iteration, all together.
  Seconds planned_time() const { return planned_time_; }

 private:
  std::vector<PlannedInstruction> plan_;
  std::size_t position_ = 0;
  Seconds planned_time_{0};
};

}  // namespace zeus::pipeline
