#include "zeus/export/json_lines.h"

#include <utility>

#include "zeus/base/json.h"
#include "zeus/export/sample.h"

namespace zeus {
namespace {

// Adds values that may be missing to an object: values that a device does not have are left out,
// and values that could not be read now are null, with the reason.
class Fields {
 public:
  explicit Fields(Json& json) : json_(json) {}
  ~Fields() {
    if (!reasons_.empty()) json_["reasons"] = std::move(reasons_);
  }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  template <class T, class Convert>
  void Set(const char* name, const Result<T>& value, Convert convert) {
    if (value.ok()) {
      json_[name] = convert(value.value());
    } else if (value.error().code != ErrorCode::kNotSupported) {
      json_[name] = nullptr;
      reasons_[name] = value.error().message;
    }
  }

  template <class Unit>
  void Set(const char* name, const Result<Quantity<Unit>>& value) {
    Set(name, value, [](Quantity<Unit> quantity) { return quantity.value(); });
  }

 private:
  Json& json_;
  Json reasons_ = Json::object();
};

void SetEnergy(Json& json, const EnergyMonitor::Present& present) {
  json["energy_joules"] = nullptr;
  if (!present.total.ok()) {
    json["reason"] = present.total.error().message;
    return;
  }
  json["energy_joules"] = present.total.value().value();
  json["energy_sigma_joules"] = present.total_sigma.value();
  json["source"] = EnergySourceName(present.source);
  json["update_period_seconds"] = present.update_period.count();
}

Json ToJson(const DeviceSample& device) {
  const EnergyMonitor::Present& present = device.present;
  Json json = {{"device", device.identity.name}};
  if (!device.identity.model.empty()) json["model"] = device.identity.model;
  if (!device.identity.uuid.empty()) json["uuid"] = device.identity.uuid;
  SetEnergy(json, present);
  Fields fields(json);
  fields.Set("power_watts", present.power);
  if (present.power.ok()) json["power_sigma_watts"] = present.power_sigma.value();
  fields.Set("instant_power_watts", present.instant_power);
  fields.Set("average_power_watts", present.average_power);
  fields.Set("memory_power_watts", present.memory_power);
  fields.Set("temperature_celsius", present.temperature);
  fields.Set("utilization_ratio", present.utilization,
             [](const Utilization& u) { return u.compute; });
  fields.Set("memory_utilization_ratio", present.utilization,
             [](const Utilization& u) { return u.memory; });
  fields.Set("graphics_clock_hertz", present.graphics_clock);
  fields.Set("requested_limit_watts", present.requested_limit);
  fields.Set("enforced_limit_watts", present.enforced_limit);
  json["flags"] = present.flags.Names();
  return json;
}

}  // namespace

Json ToJson(const Sample& sample) {
  Json devices = Json::array();
  for (const DeviceSample& device : sample.devices) devices.push_back(ToJson(device));
  return {{"schema", "zeus.sample/1"},
          {"time_seconds", UnixTime(sample.taken).count()},
          {"elapsed_seconds", sample.recorded.count()},
          {"devices", std::move(devices)}};
}

Result<std::unique_ptr<JsonLines>> JsonLines::Open(const std::filesystem::path& path) {
  ZEUS_TRY(auto file, AppendOnlyFile::Open(path, "", R"({"schema":"zeus.)"));
  return std::unique_ptr<JsonLines>(new JsonLines(std::move(file)));
}

Status JsonLines::Write(const Measurement& measurement) {
  return file_->Append(JsonText(ToJson(measurement)));
}

Status JsonLines::Write(const Sample& sample) { return file_->Append(JsonText(ToJson(sample))); }

}  // namespace zeus
