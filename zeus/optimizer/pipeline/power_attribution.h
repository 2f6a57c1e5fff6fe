#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "zeus/base/units.h"

namespace zeus::pipeline {

// Which power a device draws in each of a few states (forward, backward, waiting), from its energy
// over times in which it was in several of them: least squares. Sensors update ten times a second,
// instructions are often shorter, and their energies cannot be read off; but no two times between
// updates have the same mixture. One owner.
class PowerAttribution {
 public:
  explicit PowerAttribution(std::size_t states);

  // The device used `energy` while it was in state k for exposure[k].
  void Add(std::span<const Seconds> exposure, Joules energy);

  struct Estimate {
    Watts power{};
    Watts sigma{};  // One standard error; infinite for a state that was never seen.
  };
  // One for each state. States that come only together have large sigmas.
  std::vector<Estimate> Solve() const;

 private:
  double& Normal(std::size_t row, std::size_t column) { return normal_[row * states_ + column]; }
  double Normal(std::size_t row, std::size_t column) const {
    return normal_[row * states_ + column];
  }

  const std::size_t states_;
  std::vector<double> normal_;  // Sums of products of exposures.
  std::vector<double> right_;   // Sums of exposure times energy.
  double squares_ = 0;          // Sum of squares of energies.
  std::size_t count_ = 0;
};

}  // namespace zeus::pipeline
