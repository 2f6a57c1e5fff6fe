#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/profile.h"

namespace zeus::pipeline {

// When a clock has been measured well enough, and when lower ones are not worth trying.
struct SweepRules {
  // Standard error of the time and of the power of an instruction, relative to them.
  double relative_error = 0.01;
  int least_repetitions = 6;  // Of each instruction.
  // Of iterations at one clock; then what is known must do.
  int most_iterations = 12;
  // The first instructions after a change of the clock are not counted: it takes tens of
  // milliseconds.
  int settling_instructions = 2;
  // So many clocks in a row at which no instruction of any stage takes less effective energy end
  // the sweep.
  int patience = 2;
};

// One instruction of a stage at one clock.
struct InstructionEstimate {
  std::string instruction{};
  int repetitions = 0;
  Seconds time{0};
  Seconds time_sigma{0};  // Standard errors.
  Watts power{};
  Watts power_sigma{};

  Joules energy() const { return power * time; }
};

// A stage while it waits for another one.
struct WaitingEstimate {
  Watts power{};
  Watts sigma{};
};

// Decides which clocks a stage is measured at: from the highest downwards, until lower ones bring
// nothing. Pure. One owner.
class ClockSweep {
 public:
  // `clocks`: highest first, at least one.
  ClockSweep(std::vector<Hertz> clocks, SweepRules rules);

  Hertz clock() const { return clocks_[position_]; }
  Hertz highest() const { return clocks_.front(); }
  const SweepRules& rules() const { return rules_; }

  // Whether this was measured well enough at clock(), in so many whole iterations.
  bool KnowsEnough(const std::vector<InstructionEstimate>& estimates, int iterations) const;

  // Takes down what was measured at clock().
  void Take(std::vector<InstructionEstimate> estimates);

  // Whether a clock below the present one may take less effective energy (e - blocking * t), and
  // there is one. After Take().
  bool WantsLower(Watts blocking) const;
  // To the next lower clock.
  void GoLower() { ++position_; }
  bool AtLowest() const { return position_ + 1 >= clocks_.size(); }

  struct Measured {
    Hertz clock{};
    std::vector<InstructionEstimate> estimates{};
  };
  const std::vector<Measured>& measured() const { return measured_; }

 private:
  // How many clocks ago the least effective energy of the instruction was seen.
  int SinceLeast(const std::string& instruction, Watts blocking) const;

  const std::vector<Hertz> clocks_;
  const SweepRules rules_;
  std::size_t position_ = 0;
  std::vector<Measured> measured_{};
};

// Without the points of each instruction that another one beats in time and in effective energy.
// The highest clock's stays: it is what a plan is compared with.
void DropDominated(PipelineProfile& profile);

}  // namespace zeus::pipeline
