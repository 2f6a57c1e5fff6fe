#include "apps/nvml_simulator/node_choice.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "zeus/device/sim/node_directory.h"

namespace zeus::nvml_simulator {
namespace {

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Opens the node for writing if permitted; each call decides by itself whether a change is allowed.
Result<sim::SharedNode> Open(const sim::NodeDirectory& directory, std::string_view name) {
  auto node = directory.Open(name, sim::Access::kWrite);
  if (!node.ok() && node.error().code == ErrorCode::kPermissionDenied)
    return directory.Open(name, sim::Access::kRead);
  return node;
}

}  // namespace

Result<sim::SharedNode> ChooseNode(Clock& clock) {
  ZEUS_TRY(const sim::NodeDirectory directory, sim::NodeDirectory::FromEnvironment(clock));
  if (const auto name = Environment("ZEUS_SIM_NODE"); !name.empty()) return Open(directory, name);
  auto shared = Open(directory, sim::kDefaultNodeName);
  if (shared.ok()) return shared;
  const auto description = Environment("ZEUS_SIM");
  if (description.empty()) return shared;
  sim::NodeSpec spec;
  auto gpus = sim::ParseGpuList(description);
  if (!gpus.ok()) return std::move(gpus).error().While("ZEUS_SIM");
  spec.gpus = std::move(gpus).value();
  return sim::SharedNode::CreatePrivate(spec, clock);
}

}  // namespace zeus::nvml_simulator
