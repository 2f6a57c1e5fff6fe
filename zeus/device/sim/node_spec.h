#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {

inline constexpr unsigned kMaxGpusPerNode = 64;
inline constexpr double kMinTimeScale = 1e-3;
inline constexpr double kMaxTimeScale = 1e6;

// Description of a simulated node, before it is started.
struct NodeSpec {
  std::vector<const GpuModel*> gpus;
  std::uint64_t seed = 0;
  double time_scale = 1.0;         // Node seconds per real second.
  std::optional<Celsius> ambient;  // Where it is not the models' own.
};

// "4xV100,2xA100", "H100": in this order, one index per GPU. kInvalidArgument quotes the part
// that is wrong.
Result<std::vector<const GpuModel*>> ParseGpuList(std::string_view text);

// A count per run of equal models: "4xV100,2xA100". The inverse of ParseGpuList().
std::string FormatGpuList(const std::vector<const GpuModel*>& gpus);

// Letters, digits, '.', '_' and '-'; at most 64 of them: a node's name is part of a file name.
Status CheckNodeName(std::string_view name);

// At least one GPU, not too many, and a time scale inside its range.
Status CheckNodeSpec(const NodeSpec& spec);

}  // namespace zeus::sim
