#pragma once

#include <chrono>
#include <string>

#include "zeus/colosseum/duel.h"

namespace zeus::colosseum::testing {

inline constexpr WallTime kStart{std::chrono::microseconds(1'700'000'000'123'456)};

// A duel that has just begun.
inline Duel ADuel(const std::string& id) {
  Duel duel{.id = id, .created_at = kStart, .stage = Answering{}, .stage_at = kStart};
  duel.at(Side::kA).model = "left-8b";
  duel.at(Side::kB).model = "right-70b";
  return duel;
}

}  // namespace zeus::colosseum::testing
