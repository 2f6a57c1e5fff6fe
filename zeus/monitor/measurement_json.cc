#include "zeus/monitor/measurement_json.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

// Reads the field of this name, or of the name that it had before names carried units.
class FieldsByEitherName {
 public:
  explicit FieldsByEitherName(const Json& json) : json_(json) {}

  Result<double> Number(const char* name, const char* old_name) const {
    ZEUS_TRY(const auto number, GetOptionalField<double>(json_, Present(name, old_name)));
    return number.value_or(std::numeric_limits<double>::quiet_NaN());
  }

 private:
  const char* Present(const char* name, const char* old_name) const {
    return json_.contains(name) || !json_.contains(old_name) ? name : old_name;
  }

  const Json& json_;
};

Result<EnergySource> ParseEnergySource(const std::string& name) {
  for (const EnergySource source :
       {EnergySource::kCounter, EnergySource::kIntegrated, EnergySource::kModel})
    if (name == EnergySourceName(source)) return source;
  return InvalidArgument("source: no source of energy is called " + Quote(name));
}

Result<EnergyEstimate> EstimateFromJson(const Json& json) {
  const FieldsByEitherName fields(json);
  ZEUS_TRY(const double energy, fields.Number("energy_joules", "energy"));
  ZEUS_TRY(const double sigma, fields.Number("energy_sigma_joules", "sigma"));
  ZEUS_TRY(const double shared_sigma, fields.Number("energy_shared_sigma_joules", "shared_sigma"));
  ZEUS_TRY(const double attributed, fields.Number("attributed_joules", "attributed"));
  ZEUS_TRY(const double coverage, fields.Number("coverage", "coverage"));
  ZEUS_TRY(const double update_period, fields.Number("update_period_seconds", "update_period"));
  ZEUS_TRY(const auto source_name, GetField<std::string>(json, "source"));
  ZEUS_TRY(const EnergySource source, ParseEnergySource(source_name));
  ZEUS_TRY(const int updates, GetField<int>(json, "updates"));
  ZEUS_TRY(const auto flags, GetField<std::vector<std::string>>(json, "flags"));
  EnergyEstimate estimate{.energy = Joules(energy),
                          .sigma = Joules(sigma),
                          .shared_sigma = Joules(shared_sigma),
                          .attributed = Joules(attributed),
                          .source = source,
                          .coverage = coverage,
                          .updates = updates,
                          .update_period = Seconds(update_period),
                          .flags = {}};
  for (const std::string& name : flags)
    if (const auto flag = MeasurementFlags::Parse(name)) estimate.flags.Set(*flag);
  return estimate;
}

Result<DeviceMeasurement> DeviceFromJson(const Json& json) {
  ZEUS_TRY(std::string name, GetField<std::string>(json, "device"));
  ZEUS_TRY(const bool in_total, GetField<bool>(json, "in_total"));
  ZEUS_TRY(auto reason, GetOptionalField<std::string>(json, "reason"));
  DeviceMeasurement device{.device = std::move(name),
                           .energy = Error{ErrorCode::kUnavailable, reason.value_or("")},
                           .in_total = in_total};
  if (reason) return device;
  ZEUS_TRY(device.energy, EstimateFromJson(json));
  return device;
}

}  // namespace

Json ToJson(const DeviceMeasurement& device) {
  Json json = {{"device", device.device}, {"in_total", device.in_total}};
  if (!device.energy.ok()) {
    for (const char* field :
         {"energy_joules", "energy_sigma_joules", "energy_shared_sigma_joules", "attributed_joules",
          "source", "coverage", "updates", "update_period_seconds"})
      json[field] = nullptr;
    json["flags"] = Json::array();
    json["reason"] = device.energy.error().message;
    return json;
  }
  const EnergyEstimate& estimate = device.energy.value();
  json["energy_joules"] = FiniteOrNull(estimate.energy.value());
  json["energy_sigma_joules"] = FiniteOrNull(estimate.sigma.value());
  json["energy_shared_sigma_joules"] = FiniteOrNull(estimate.shared_sigma.value());
  json["attributed_joules"] = FiniteOrNull(estimate.attributed.value());
  json["source"] = EnergySourceName(estimate.source);
  json["coverage"] = FiniteOrNull(estimate.coverage);
  json["updates"] = estimate.updates;
  json["update_period_seconds"] = FiniteOrNull(estimate.update_period.count());
  json["flags"] = estimate.flags.Names();
  return json;
}

Json ToJson(const Measurement::Total& total) {
  const bool known = !total.contains.empty();
  const auto number = [known](double value) { return known ? FiniteOrNull(value) : Json(nullptr); };
  return {{"energy_joules", number(total.energy.value())},
          {"energy_sigma_joules", number(total.sigma.value())},
          {"attributed_joules", number(total.attributed.value())},
          {"contains", total.contains},
          {"missing", total.missing}};
}

Json ToJson(const Measurement& measurement) {
  Json devices = Json::array();
  for (const DeviceMeasurement& device : measurement.devices) devices.push_back(ToJson(device));
  return {{"schema", "zeus.window/1"},
          {"window", measurement.window},
          {"start_time_seconds", Seconds(measurement.started.time_since_epoch()).count()},
          {"elapsed_seconds", FiniteOrNull(measurement.time.count())},
          {"stage", measurement.stage == Measurement::Stage::kRefined ? "refined" : "immediate"},
          {"devices", std::move(devices)},
          {"total", ToJson(measurement.Sum())}};
}

Result<Measurement> MeasurementFromJson(const Json& json) {
  if (!json.is_object()) return InvalidArgument("a measurement must be a JSON object");
  const FieldsByEitherName fields(json);
  Measurement measurement;
  ZEUS_TRY(measurement.window, GetField<std::string>(json, "window"));
  ZEUS_TRY(const double started, fields.Number("start_time_seconds", "start_time"));
  if (!std::isfinite(started)) return InvalidArgument("start_time_seconds must be a number");
  measurement.started =
      WallTime(std::chrono::microseconds(static_cast<std::int64_t>(std::llround(started * 1e6))));
  ZEUS_TRY(const double time, fields.Number("elapsed_seconds", "time"));
  measurement.time = Seconds(time);
  ZEUS_TRY(const auto stage, GetOptionalField<std::string>(json, "stage"));
  ZEUS_TRY(const auto refined, GetOptionalField<bool>(json, "refined"));
  if (stage == "refined" || refined == true) measurement.stage = Measurement::Stage::kRefined;
  const auto devices = json.find("devices");
  if (devices == json.end() || !devices->is_array())
    return InvalidArgument("devices must be a list");
  for (const Json& one : *devices) {
    ZEUS_TRY(DeviceMeasurement device, DeviceFromJson(one));
    measurement.devices.push_back(std::move(device));
  }
  return measurement;
}

}  // namespace zeus
