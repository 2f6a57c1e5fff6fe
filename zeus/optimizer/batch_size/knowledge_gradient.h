#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/knowledge.h"

// The decisions of the knowledge gradient, given what is known: exploring a batch size is worth
// what the recurrences to come may gain by it. `horizon` is how many of them are counted on. All
// need a leader.
namespace zeus {

// The candidate whose exploration is worth most; nullopt when none is worth more than the leader.
std::optional<std::size_t> MostValuable(const Knowledge& knowledge, double horizon, double beta);

// The candidate that could be cheapest if things are better than believed; nullopt when even then
// none is cheaper than the leader.
std::optional<std::size_t> MostPromising(const Knowledge& knowledge);

// The epochs after which a run with a batch size that has not converged yet is not worth going on,
// at most `limit`. Looked at after each epoch from `first` on.
int WorthwhileEpochs(const Knowledge& knowledge, std::size_t arm, Joules epoch_cost, double horizon,
                     int first, int limit);

}  // namespace zeus
