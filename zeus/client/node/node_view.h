#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/wire/node/lease.h"

namespace zeus::client {

// A GPU of the machine as the daemon describes it in GET /v1/node.
struct NodeGpu {
  std::string device{};  // As KnobKey names it.
  std::string name{};    // At the daemon: "gpu:0".
  GpuIdentity identity{};
  // The whole range of the hardware, and what this caller may set; a knob may be missing.
  std::map<wire::LeaseKnob, KnobChoices> ranges{};
  std::map<wire::LeaseKnob, KnobChoices> knobs{};
  std::optional<Watts> requested_limit{};
  std::optional<Watts> enforced_limit{};
  std::optional<Watts> default_limit{};
  std::optional<Persistence> persistence{};
  bool lost = false;
  bool stuck = false;
};

struct NodeCpu {
  std::string device{};  // "cpu:0"
  CpuIdentity identity{};
  bool dram = false;
  std::map<wire::LeaseKnob, KnobChoices> ranges{};
  std::map<wire::LeaseKnob, KnobChoices> knobs{};
};

struct NodeView {
  std::string version{};
  std::string host{};
  std::vector<NodeGpu> gpus{};  // In PCI order.
  std::vector<NodeCpu> cpus{};
  // Why energy by pod is not known on a node of Kubernetes; empty: it is, or it is none.
  std::string pod_trouble{};
};

// The newest reading of a device, from GET /v1/readings. nullopt: the daemon does not know it.
struct ReadingView {
  std::string device{};
  std::string name{};
  std::optional<double> energy_joules{};
  std::optional<double> power_watts{};
  std::optional<double> power_sigma_watts{};
  std::optional<double> age_seconds{};
  std::optional<double> temperature_celsius{};
  std::optional<double> graphics_clock_hertz{};
  std::optional<double> requested_limit_watts{};
  std::optional<double> enforced_limit_watts{};
  std::optional<double> compute_utilization{};
  std::optional<double> memory_utilization{};
};

// kInvalidArgument begins with the name of the field. Unknown fields are ignored.
Result<NodeView> ParseNodeView(const Json& json);
Result<std::vector<ReadingView>> ParseReadings(const Json& json);

}  // namespace zeus::client
