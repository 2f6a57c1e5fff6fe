#pragma once

#include <span>
#include <string>

#include "zeus/replay/replay_job.h"

namespace zeus::replay::paper {

// Of which jobs the energy at the greatest power limit falls and then rises with the batch size,
// counting only batch sizes that always arrive. Titles, separated by commas; empty: of none.
struct Valleys {
  std::string one{};
  std::string one_within_scatter{};  // But for steps of less than two standard errors.
  std::string several{};
};
Valleys ValleysOf(std::span<const ReplayJob> jobs);

}  // namespace zeus::replay::paper
