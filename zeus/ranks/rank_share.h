#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/monitor/measurement.h"

namespace zeus {

// A device that a rank can measure.
struct RankDevice {
  std::string device;  // "gpu:0" on the rank's node.
  std::string key;     // Names the hardware, the same for all processes: NodeMonitor::key().
  std::string model{};
  std::string uuid{};
  bool calibrated = false;
};

// A rank tells this to the others: who it is, and once its command has ended, its measurement. It
// measures all devices that it can read, so that others on its node may die; those that it uses
// itself are `own`, by their keys.
struct RankShare {
  int rank = 0;
  std::string host{};
  std::vector<std::string> own{};
  std::vector<RankDevice> devices{};
  std::optional<int> exit_code{};            // Not set while the command runs.
  std::optional<Measurement> measurement{};  // Not set for a rank that was lost before its end.
  Seconds begin{};  // The window began then, on the clock that the processes of a machine have in
                    // common.
};

Json ToJson(const RankShare& share);
// kInvalidArgument names the field that is missing or wrong.
Result<RankShare> RankShareFromJson(const Json& json);

// All ranks of a launch together.
struct JobMeasurement {
  // Every device that some rank uses, once, called "n1/gpu:0"; time is that of the slowest rank.
  Measurement measurement{};
  std::vector<RankDevice> devices{};  // They have the same order and names.

  struct Node {
    std::string host;
    std::vector<int> ranks;
    Seconds time{};  // The time of its slowest rank.
    Measurement::Total total{};
  };
  std::vector<Node> nodes{};  // By their lowest ranks.

  struct Rank {
    int rank;
    std::string host;
    std::optional<int> exit_code;  // Not set for a rank that was lost.
  };
  std::vector<Rank> ranks{};   // Those that were met.
  std::vector<int> missing{};  // Those that were never met.
};

// A device that several ranks measured counts once, by the rank that watched it for longest. Where
// even that one missed a part of the time in which ranks used the device, the result is flagged as
// partial. A device that only lost ranks could measure has a reason and no number. `size` is the
// number of ranks of the launch.
JobMeasurement Combine(int size, std::vector<RankShare> shares);

}  // namespace zeus
