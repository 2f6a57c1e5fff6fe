#include "zeus/device/knob_entry.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

constexpr const char* kSchema = "zeus.knob/1";

Json BeforeJson(const KnobState& before) {
  Json json = {{"setting", nullptr}};  // A clock that was not locked.
  if (before.setting) json["setting"] = ToNumber(*before.setting);
  if (before.persistence) json["persistence"] = *before.persistence == Persistence::kOn;
  return json;
}

Result<KnobState> ParseBefore(const Json& json, KnobKind kind) {
  ZEUS_TRY(const auto setting, GetOptionalField<double>(json, "setting"));
  ZEUS_TRY(const auto persistence, GetOptionalField<bool>(json, "persistence"));
  KnobState before;
  if (setting) before.setting = SettingOf(kind, *setting);
  if (persistence) before.persistence = *persistence ? Persistence::kOn : Persistence::kOff;
  const bool meaningful = setting ? std::isfinite(*setting) && *setting > 0 : IsClock(kind);
  if (!meaningful) return Error{ErrorCode::kInvalidArgument, "the setting before is not a setting"};
  return before;
}

Result<KnobDevice> ParseDevice(const Json& json) {
  KnobDevice device;
  ZEUS_TRY(device.name, GetField<std::string>(json, "name"));
  ZEUS_TRY(device.uuid, GetField<std::string>(json, "uuid"));
  ZEUS_TRY(device.pci_address, GetField<std::string>(json, "pci"));
  ZEUS_TRY(device.driver, GetField<std::string>(json, "driver"));
  return device;
}

Result<ProcessIdentity> ParseOwner(const Json& json) {
  ProcessIdentity owner;
  ZEUS_TRY(owner.pid, GetField<std::int64_t>(json, "pid"));
  ZEUS_TRY(owner.start_ticks, GetField<std::uint64_t>(json, "start_ticks"));
  ZEUS_TRY(owner.pid_namespace, GetField<std::string>(json, "pid_namespace"));
  return owner;
}

Result<KnobEntry> FromJson(const Json& json) {
  ZEUS_TRY(const auto schema, GetField<std::string>(json, "schema"));
  if (schema != kSchema)
    return Error{ErrorCode::kInvalidArgument, fmt::format("the schema is not {}", kSchema)};
  KnobEntry entry;
  ZEUS_TRY(const auto kind, GetField<std::string>(json, "knob"));
  ZEUS_TRY(entry.kind, ParseKnobKind(kind));
  ZEUS_TRY(const auto device, GetField<Json>(json, "device"));
  ZEUS_TRY(entry.device, ParseDevice(device));
  ZEUS_TRY(const auto before, GetField<Json>(json, "before"));
  ZEUS_TRY(entry.before, ParseBefore(before, entry.kind));
  ZEUS_TRY(entry.boot_id, GetField<std::string>(json, "boot_id"));
  ZEUS_TRY(const auto mark, GetOptionalField<double>(json, "energy_joules"));
  if (mark) entry.epoch_mark = Joules(*mark);
  ZEUS_TRY(const auto owner, GetField<Json>(json, "owner"));
  ZEUS_TRY(entry.owner, ParseOwner(owner));
  ZEUS_TRY(const auto ours, GetOptionalField<std::vector<double>>(json, "settings"));
  for (const double setting : ours.value_or(std::vector<double>()))
    entry.ours.push_back(SettingOf(entry.kind, setting));
  ZEUS_TRY(const auto locked, GetOptionalField<bool>(json, "locked"));
  entry.locked = locked.value_or(false);
  ZEUS_TRY(const auto since, GetField<std::string>(json, "since"));
  ZEUS_TRY(entry.since, ParseWallTime(since));
  return entry;
}

}  // namespace

Json ToJson(const KnobEntry& entry) {
  Json json = {{"schema", kSchema},
               {"knob", KnobKindName(entry.kind)},
               {"device",
                {{"name", entry.device.name},
                 {"uuid", entry.device.uuid},
                 {"pci", entry.device.pci_address},
                 {"driver", entry.device.driver}}},
               {"before", BeforeJson(entry.before)},
               {"boot_id", entry.boot_id},
               {"energy_joules", nullptr},
               {"owner",
                {{"pid", entry.owner.pid},
                 {"start_ticks", entry.owner.start_ticks},
                 {"pid_namespace", entry.owner.pid_namespace}}},
               {"settings", Json::array()},
               {"locked", entry.locked},
               {"since", ToText(entry.since)}};
  if (entry.epoch_mark) json["energy_joules"] = entry.epoch_mark->value();
  for (const Setting& setting : entry.ours) json["settings"].push_back(ToNumber(setting));
  return json;
}

Result<KnobEntry> ParseKnobEntry(std::string_view text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "not a JSON object"};
  return FromJson(json);
}

std::string KnobFileName(KnobKind kind, const KnobDevice& device) {
  std::string key = device.uuid;
  if (key.empty()) key = device.pci_address;
  if (key.empty()) key = device.name;
  for (char& c : key)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  return fmt::format("{}.{}.json", KnobKindName(kind), key);
}

std::string OwnerText(const KnobEntry& entry, const std::string& this_namespace) {
  return fmt::format(
      "process {}{}", entry.owner.pid,
      entry.owner.pid_namespace == this_namespace ? "" : " of another pid namespace");
}

}  // namespace zeus
