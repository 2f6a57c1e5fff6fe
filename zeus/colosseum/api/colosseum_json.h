#pragma once

#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/colosseum/duel.h"
#include "zeus/colosseum/leaderboard.h"

namespace zeus::colosseum {

// Returns everything of a duel that a client may know at its stage, and nothing else: this is where
// blindness is decided. Energies appear with the vote for an answer, names, counts and texts with
// the reveal. The reason of a failure never does.
Json VisibleJson(const Duel& duel);

// Returns a revealed duel as everybody may know it: without its id, with which one may vote, and
// without texts.
Json PublicJson(const Duel& duel);

Json ToJson(const std::vector<Standing>& standings);

}  // namespace zeus::colosseum
