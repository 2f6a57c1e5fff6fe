#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus::examples {

// The measured outcome of training on each slice of the data with each batch size: a job whose best
// batch size moves.
struct DriftTable {
  struct Arm {
    int batch_size = 0;
    Joules epoch_cost{};
    // By slice, then by repetition; nullopt: the target was not reached within max_epochs.
    std::vector<std::vector<std::optional<int>>> epochs{};
  };
  int slices = 0;
  int repetitions = 0;
  int max_epochs = 0;
  int default_batch_size = 0;
  std::vector<Arm> arms{};  // Ascending.

  // Returns the mean cost of a run to the target; infinite when a repetition never reaches it.
  Joules ExpectedCost(std::size_t arm, int slice) const;
  // Returns the index of the arm that costs least.
  std::size_t BestArm(int slice) const;
};

struct SliceOutcome {
  int batch_size = 0;  // Batch size of the last attempt.
  int tries = 0;
  Joules cost{};  // Cost of all attempts.
};

// Runs one recurrence per slice. Each is tried until the target is reached, with the epoch budget
// that the policy gives.
Result<std::vector<SliceOutcome>> RunPolicy(const DriftTable& table, const PolicySpec& spec);
// Runs every slice with its best batch size, known beforehand.
std::vector<SliceOutcome> RunOracle(const DriftTable& table);

}  // namespace zeus::examples
