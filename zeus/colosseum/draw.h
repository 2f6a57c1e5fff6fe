#pragma once

#include <array>
#include <string>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/base/result.h"

namespace zeus::colosseum {

// Draws the two models of a duel and their positions: every pair, and either order, is as likely.
// With a preference one of them is that model. `models` names each model once. kNotFound for a
// preference that is not among them, kUnavailable for fewer than two models.
Result<std::array<std::string, 2>> DrawPair(const std::vector<std::string>& models,
                                            const std::string& preference, Random& random);

// A name that nobody can guess: 128 bits.
std::string MakeDuelId(const Entropy& entropy);

}  // namespace zeus::colosseum
