#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/profile.h"

namespace zeus::pipeline {

// Rules for when a clock has been measured well enough, and when lower ones are not worth trying.
struct SweepRules {
  // Greatest standard error of an instruction's time and power, relative to them.
  double relative_error = 0.01;
  int least_repetitions = 6;  // Repetitions of each instruction at a clock.
  // The next clock follows after this many iterations, however precise the measurement is.
  int most_iterations = 12;
  // This many instructions after a change of the clock are not counted: a change takes tens of
  // milliseconds.
  int settling_instructions = 2;
  // The sweep ends after this many clocks in a row at which no instruction of any stage takes less
  // effective energy than before.
  int clocks_without_gain = 2;
};

// A measurement of one instruction of a stage at one clock.
struct InstructionEstimate {
  std::string instruction{};
  int repetitions = 0;
  Seconds time{0};
  Seconds time_sigma{0};  // Standard error of `time`.
  Watts power{};
  Watts power_sigma{};

  Joules energy() const { return power * time; }
};

// A measurement of a stage's power while it waits for another one.
struct WaitingEstimate {
  Watts power{};
  Watts sigma{};
};

// Decides at which clocks a stage is measured: from the highest downwards, until lower ones do not
// save effective energy any more. It has no side effects. One owner.
class ClockSweep {
 public:
  // `clocks` has at least one clock, the highest first.
  ClockSweep(std::vector<Hertz> clocks, SweepRules rules);

  Hertz clock() const { return clocks_[position_]; }
  Hertz highest() const { return clocks_.front(); }
  const SweepRules& rules() const { return rules_; }

  // Whether these estimates at clock(), from that many whole iterations, are precise enough.
  bool KnowsEnough(const std::vector<InstructionEstimate>& estimates, int iterations) const;

  // Records the measurements at clock().
  void Record(std::vector<InstructionEstimate> estimates);

  // Whether there is a lower clock that may take less effective energy (e - blocking * t). To be
  // called after Record().
  bool WantsLower(Watts blocking) const;
  // Moves on to the next lower clock.
  void GoLower() { ++position_; }
  bool AtLowest() const { return position_ + 1 >= clocks_.size(); }

  struct Measured {
    Hertz clock{};
    std::vector<InstructionEstimate> estimates{};
  };
  const std::vector<Measured>& measured() const { return measured_; }

 private:
  // Returns how many clocks ago the least effective energy of the instruction was measured.
  int SinceLeast(const std::string& instruction, Watts blocking) const;

  const std::vector<Hertz> clocks_;
  const SweepRules rules_;
  std::size_t position_ = 0;
  std::vector<Measured> measured_{};
};

// Drops the points of each instruction that another point beats in time and in effective energy.
// The point at the highest clock stays, since plans are compared with it.
void DropDominated(PipelineProfile& profile);

}  // namespace zeus::pipeline
