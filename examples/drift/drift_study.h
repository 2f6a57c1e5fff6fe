#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus::examples {

// What training on each slice takes, as it was really trained: a job whose best batch size moves.
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

  // Of a run to the target, on average; infinite when a repetition never arrives.
  Joules ExpectedCost(std::size_t arm, int slice) const;
  // The arm that costs least.
  std::size_t BestArm(int slice) const;
};

struct SliceOutcome {
  int batch_size = 0;  // Of the last try.
  int tries = 0;
  Joules cost{};  // Of all tries.
};

// One recurrence per slice, each tried until the target is reached, by the policy's own budget.
Result<std::vector<SliceOutcome>> RunPolicy(const DriftTable& table, const PolicySpec& spec);
// Who knows every slice beforehand.
std::vector<SliceOutcome> RunOracle(const DriftTable& table);

}  // namespace zeus::examples
