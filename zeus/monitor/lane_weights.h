#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "zeus/monitor/settlement.h"

namespace zeus {

// With what weight this process uses its devices: that of the innermost window of every lane, as
// Settlement books it, but at once instead of when the sensors have spoken. Not thread-safe.
class LaneWeights {
 public:
  // The weight after an edge of a window.
  double After(Settlement::EdgeKind edge, const Window& window) {
    std::vector<Use>& lane = lanes_[window.lane];
    if (edge == Settlement::EdgeKind::kBegin) {
      lane.push_back({window.id, window.weight});
    } else {
      std::erase_if(lane, [&](const Use& use) { return use.id == window.id; });
    }
    if (lane.empty()) lanes_.erase(window.lane);
    return Total();
  }

 private:
  struct Use {
    WindowId id;
    double weight;
  };

  // Summed anew each time: what is added and subtracted a million times would drift.
  double Total() const {
    double sum = 0;
    for (const auto& [id, uses] : lanes_) sum += uses.back().weight;
    return sum;
  }

  std::unordered_map<std::uint64_t, std::vector<Use>> lanes_;
};

}  // namespace zeus
