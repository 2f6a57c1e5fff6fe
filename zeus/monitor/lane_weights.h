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
  // What matters of an edge of a window.
  struct Edge {
    TimePoint time;
    Settlement::EdgeKind kind;
    std::uint64_t lane;
    WindowId id;
    double weight;
  };

  // The weight after an edge.
  double After(const Edge& edge) {
    std::vector<Use>& lane = lanes_[edge.lane];
    if (edge.kind == Settlement::EdgeKind::kBegin) {
      lane.push_back({edge.id, edge.weight});
    } else {
      std::erase_if(lane, [&](const Use& use) { return use.id == edge.id; });
    }
    if (lane.empty()) lanes_.erase(edge.lane);
    return Total();
  }

  // Summed anew each time: what is added and subtracted a million times would drift.
  double Total() const {
    double sum = 0;
    for (const auto& [id, uses] : lanes_) sum += uses.back().weight;
    return sum;
  }

 private:
  struct Use {
    WindowId id;
    double weight;
  };

  std::unordered_map<std::uint64_t, std::vector<Use>> lanes_;
};

}  // namespace zeus
