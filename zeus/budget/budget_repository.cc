#include "zeus/budget/budget_repository.h"

#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"

namespace zeus::budget {

Error NoLongerCurrent() {
  return {ErrorCode::kConflict,
          "another server has taken over this budget: run one server for each database"};
}

std::string StoredNodeText(const StoredNode& node) {
  Json devices = Json::array();
  for (const StoredDevice& device : node.devices)
    devices.push_back({{"id", device.id},
                       {"model", device.model},
                       {"lowest_watts", device.lowest.value()},
                       {"highest_watts", device.highest.value()},
                       {"ceiling_watts", device.ceiling.value()},
                       {"fallback_watts", device.fallback.value()}});
  return JsonText(
      {{"name", node.name}, {"guarded", node.guarded}, {"devices", std::move(devices)}});
}

Result<StoredNode> ParseStoredNode(const std::string& text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  StoredNode node;
  Json devices = Json::array();
  FieldReader reader("a stored node", json);
  reader.Require("name", node.name);
  reader.Require("guarded", node.guarded);
  reader.Require("devices", devices);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  for (const Json& one : devices) {
    StoredDevice device;
    double lowest = 0;
    double highest = 0;
    double ceiling = 0;
    double fallback = 0;
    FieldReader fields("a stored device", one);
    fields.Require("id", device.id);
    fields.Read("model", device.model);
    fields.Require("lowest_watts", lowest);
    fields.Require("highest_watts", highest);
    fields.Require("ceiling_watts", ceiling);
    fields.Require("fallback_watts", fallback);
    ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
    device.lowest = Watts(lowest);
    device.highest = Watts(highest);
    device.ceiling = Watts(ceiling);
    device.fallback = Watts(fallback);
    node.devices.push_back(std::move(device));
  }
  return node;
}

}  // namespace zeus::budget
