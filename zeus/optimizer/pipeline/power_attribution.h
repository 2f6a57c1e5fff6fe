#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "zeus/base/units.h"

namespace zeus::pipeline {

// Estimates the power of a device in each of a few states (forward, backward, waiting). Sensors
// update about ten times a second and instructions are often shorter, so the energy of one
// instruction cannot be read. But each interval between updates contains another mixture of states:
// energy = sum of power[k] * time in state k, which least squares solves for the powers. One owner.
class PowerAttribution {
 public:
  explicit PowerAttribution(std::size_t states);

  // The device used `energy` while it was in state k for exposure[k].
  void Add(std::span<const Seconds> exposure, Joules energy);

  struct Estimate {
    Watts power{};
    Watts sigma{};  // Standard error; infinite for a state that never occurred.
  };
  // Returns one estimate for each state. States that only occur together have large sigmas.
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
