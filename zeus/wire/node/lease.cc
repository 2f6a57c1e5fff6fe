#include "zeus/wire/node/lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::wire {
namespace {

constexpr std::size_t kLongestText = 200;
constexpr Seconds kShortestTtl(1);
constexpr Seconds kLongestTtl(3600);

template <class T>
struct Named {
  T value;
  std::string_view name;
};

constexpr std::array kKnobs = {
    Named<LeaseKnob>{LeaseKnob::kGpuPowerLimit, "gpu_power_limit"},
    Named<LeaseKnob>{LeaseKnob::kGraphicsClock, "graphics_clock"},
    Named<LeaseKnob>{LeaseKnob::kMemoryClock, "memory_clock"},
    Named<LeaseKnob>{LeaseKnob::kCpuPowerLimit, "cpu_power_limit"},
    Named<LeaseKnob>{LeaseKnob::kPersistence, "persistence"},
};
constexpr std::array kClasses = {
    Named<LeaseClass>{LeaseClass::kUser, "user"},
    Named<LeaseClass>{LeaseClass::kJob, "job"},
    Named<LeaseClass>{LeaseClass::kSite, "site"},
};
constexpr std::array kHolders = {
    Named<HolderKind>{HolderKind::kConnection, "connection"},
    Named<HolderKind>{HolderKind::kProcess, "process"},
    Named<HolderKind>{HolderKind::kTtl, "ttl"},
    Named<HolderKind>{HolderKind::kJob, "job"},
    Named<HolderKind>{HolderKind::kStanding, "standing"},
};
constexpr std::array kStates = {
    Named<LeaseState>{LeaseState::kApplying, "applying"},
    Named<LeaseState>{LeaseState::kActive, "active"},
    Named<LeaseState>{LeaseState::kSuspended, "suspended"},
    Named<LeaseState>{LeaseState::kRestoring, "restoring"},
    Named<LeaseState>{LeaseState::kEnded, "ended"},
};

template <class Table, class T>
std::string_view NameIn(const Table& table, T value) {
  for (const auto& entry : table)
    if (entry.value == value) return entry.name;
  return "unknown";
}

template <class T, std::size_t N>
Result<T> FindIn(const std::array<Named<T>, N>& table, std::string_view name,
                 std::string_view kind) {
  std::string choices;
  for (const auto& entry : table) {
    if (entry.name == name) return entry.value;
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", entry.name);
  }
  return InvalidArgument(fmt::format("{} is not a {}: use one of {}", Quote(name), kind, choices));
}

// Reads a field with the name of an enumerator; `parse` knows the names.
template <class T, class Parse>
void ReadName(FieldReader& reader, const char* field, T& target, Parse parse) {
  std::string name;
  reader.Require(field, name);
  if (name.empty()) return reader.Fail(field, "is empty or missing");
  auto value = parse(name);
  if (!value.ok()) return reader.Fail(field, value.error().message);
  target = value.value();
}

void CheckText(FieldReader& reader, const char* field, std::string_view text) {
  if (text.size() > kLongestText)
    reader.Fail(field, fmt::format("is longer than {} bytes", kLongestText));
  else if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    reader.Fail(field, "has control characters");
}

void CheckName(FieldReader& reader, const char* field, std::string_view text) {
  // The message begins with the name of the field, which Fail() puts there itself.
  if (const Status fits = CheckIdentifier("", text); !fits.ok())
    reader.Fail(field, fits.error().message.substr(2));
}

Json ValueJson(const Setting& setting) {
  if (const Watts* power = std::get_if<Watts>(&setting)) return {{"watts", power->value()}};
  return {{"hertz", std::get<Hertz>(setting).value()}};
}

Json RangeJson(Hertz lowest, Hertz highest) {
  return {{"lowest_hertz", lowest.value()}, {"highest_hertz", highest.value()}};
}

constexpr std::array kDemands = {"exactly", "at_most", "range", "on"};

Json DemandJson(const Demand& demand) {
  if (const auto* exactly = std::get_if<Exactly>(&demand)) return ValueJson(exactly->value);
  if (const auto* cap = std::get_if<AtMost>(&demand)) return ValueJson(cap->value);
  if (const auto* range = std::get_if<InRange>(&demand))
    return RangeJson(range->lowest, range->highest);
  return true;
}

Result<Setting> ParseSetting(const Json& json, LeaseKnob knob) {
  FieldReader reader("a setting", json);
  double number = 0;
  if (IsClock(knob)) {
    reader.Require("hertz", number);
    ZEUS_RETURN_IF_ERROR(reader.Finish());
    return Setting(Hertz(number));
  }
  reader.Require("watts", number);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  return Setting(Watts(number));
}

Result<Demand> ParseRange(const Json& json) {
  FieldReader reader("a range", json);
  double lowest = 0;
  double highest = 0;
  reader.Require("lowest_hertz", lowest);
  reader.Require("highest_hertz", highest);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  return Demand(InRange{Hertz(lowest), Hertz(highest)});
}

Result<Demand> ParseDemand(std::string_view kind, const Json& json, LeaseKnob knob) {
  if (kind == "range") return ParseRange(json);
  if (kind == "on") {
    if (json != true) return InvalidArgument("must be true; leave the request out for off");
    return Demand(SwitchedOn{});
  }
  if (knob == LeaseKnob::kPersistence) return InvalidArgument("persistence takes only on");
  ZEUS_TRY(const Setting setting, ParseSetting(json, knob));
  if (kind == "exactly") return Demand(Exactly{setting});
  return Demand(AtMost{setting});
}

// Reads the one demand of the request; there may be others only by mistake.
Result<Demand> FindDemand(const Json& request, LeaseKnob knob) {
  const char* kind = nullptr;
  for (const char* name : kDemands) {
    if (!request.contains(name)) continue;
    if (kind != nullptr)
      return FieldError(name, fmt::format("there is {} already; one demand a knob", kind));
    kind = name;
  }
  if (kind == nullptr) return FieldError("exactly", "say exactly, at_most, range or on");
  auto demand = ParseDemand(kind, request.at(kind), knob);
  if (!demand.ok()) return std::move(demand).error().While(kind);
  if (Status fits = CheckDemand(knob, demand.value()); !fits.ok())
    return std::move(fits).error().While(kind);
  return demand;
}

Status ReadKey(FieldReader& reader, KnobKey& key) {
  reader.Require("device", key.device);
  if (key.device.empty()) reader.Fail("device", "is empty");
  CheckName(reader, "device", key.device);
  ReadName(reader, "knob", key.knob, ParseLeaseKnob);
  return reader.FinishAllowingOthers();
}

Result<KnobRequest> ParseRequest(const Json& json) {
  FieldReader reader("a request", json);
  KnobRequest request;
  Json ignored;
  ZEUS_RETURN_IF_ERROR(ReadKey(reader, request.key));
  for (const char* name : kDemands) reader.Read(name, ignored);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  ZEUS_TRY(request.demand, FindDemand(json, request.key.knob));
  return request;
}

Result<KnobValue> ParseValue(const Json& json) {
  FieldReader reader("a value", json);
  std::optional<double> watts;
  std::optional<double> hertz;
  std::optional<double> lowest;
  std::optional<double> highest;
  std::optional<bool> on;
  reader.Read("watts", watts);
  reader.Read("hertz", hertz);
  reader.Read("lowest_hertz", lowest);
  reader.Read("highest_hertz", highest);
  reader.Read("on", on);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (watts) return KnobValue(Setting(Watts(*watts)));
  if (hertz) return KnobValue(Setting(Hertz(*hertz)));
  if (lowest && highest) return KnobValue(ClockRange{Hertz(*lowest), Hertz(*highest)});
  if (on) return KnobValue(*on ? Persistence::kOn : Persistence::kOff);
  return InvalidArgument("a value needs watts, hertz, lowest_hertz and highest_hertz, or on");
}

Result<std::optional<KnobValue>> ParseOptionalValue(const Json& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end() || found->is_null()) return std::optional<KnobValue>();
  auto value = ParseValue(*found);
  if (!value.ok()) return std::move(value).error().While(field);
  return std::optional<KnobValue>(value.value());
}

Json KnobViewJson(const KnobView& knob) {
  Json json = {{"device", knob.request.key.device}, {"knob", Name(knob.request.key.knob)}};
  json["demand"] = kDemands.at(knob.request.demand.index());
  const bool switched = std::holds_alternative<SwitchedOn>(knob.request.demand);
  json["requested"] =
      switched ? ToJson(KnobValue(Persistence::kOn)) : DemandJson(knob.request.demand);
  json["effective"] = knob.effective ? ToJson(*knob.effective) : Json(nullptr);
  json["enforced"] = knob.enforced ? ToJson(*knob.enforced) : Json(nullptr);
  json["overruled"] = knob.overruled;
  json["foreign"] = knob.foreign;
  json["bound_by"] = nullptr;
  if (!knob.bound_by.empty()) {
    json["bound_by"] = {
        {"lease", knob.bound_by}, {"class", knob.bound_by_class}, {"name", knob.bound_by_name}};
  }
  return json;
}

Status ReadBoundBy(const Json& json, KnobView& knob) {
  if (json.is_null()) return Ok();
  FieldReader reader("bound_by", json);
  reader.Require("lease", knob.bound_by);
  if (knob.bound_by.empty()) reader.Fail("lease", "is empty");
  reader.Read("class", knob.bound_by_class);
  reader.Read("name", knob.bound_by_name);
  auto read = reader.FinishAllowingOthers();
  if (!read.ok()) return std::move(read).error().While("bound_by");
  return Ok();
}

Result<KnobView> ParseKnobView(const Json& json) {
  FieldReader reader("a knob", json);
  KnobView knob;
  ZEUS_RETURN_IF_ERROR(ReadKey(reader, knob.request.key));
  std::string kind;
  Json requested;
  Json bound_by;
  reader.Require("demand", kind);
  reader.Require("requested", requested);
  reader.Read("overruled", knob.overruled);
  reader.Read("foreign", knob.foreign);
  reader.Read("bound_by", bound_by);
  if (std::ranges::find(kDemands, std::string_view(kind)) == kDemands.end())
    reader.Fail("demand", "must be exactly, at_most, range or on");
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (kind == "on" && requested.contains("on")) requested = Json(requested["on"]);
  auto demand = FindDemand({{kind, requested}}, knob.request.key.knob);
  if (!demand.ok()) return std::move(demand).error().While("requested");
  knob.request.demand = demand.value();
  ZEUS_TRY(knob.effective, ParseOptionalValue(json, "effective"));
  ZEUS_TRY(knob.enforced, ParseOptionalValue(json, "enforced"));
  ZEUS_RETURN_IF_ERROR(ReadBoundBy(bound_by, knob));
  return knob;
}

// Parses each element; errors begin with the place of theirs: "requests[2].device: is empty".
template <class T>
Result<std::vector<T>> ParseList(std::string_view field, const Json& json,
                                 Result<T> (*parse)(const Json&)) {
  if (!json.is_array()) return FieldError(field, "must be a list");
  std::vector<T> list;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", field, i);
    if (!json[i].is_object()) return FieldError(place, "must be a JSON object");
    auto element = parse(json[i]);
    if (!element.ok()) return InvalidArgument(fmt::format("{}.{}", place, element.error().message));
    list.push_back(std::move(element).value());
  }
  return list;
}

bool IsPositive(const Setting& setting) {
  const double number = ToNumber(setting);
  return std::isfinite(number) && number > 0;
}

Status CheckTtl(const std::optional<Seconds>& ttl) {
  if (!ttl || (*ttl >= kShortestTtl && *ttl <= kLongestTtl)) return Ok();
  return FieldError("ttl_seconds", fmt::format("must be from {:g} to {:g}", kShortestTtl.count(),
                                               kLongestTtl.count()));
}

void ReadHolder(FieldReader& reader, LeaseSpec& spec) {
  std::optional<std::string> holder;
  std::optional<double> ttl;
  reader.Read("holder", holder);
  reader.Read("ttl_seconds", ttl);
  reader.ReadUnlessNull("job", spec.job);
  if (ttl) spec.ttl = Seconds(*ttl);
  if (holder) {
    const auto kind = ParseHolderKind(*holder);
    if (!kind.ok()) return reader.Fail("holder", kind.error().message);
    spec.holder = kind.value();
  }
  CheckText(reader, "job", spec.job);
  const bool of_job = spec.holder == HolderKind::kJob;
  if (of_job && spec.job.empty()) reader.Fail("job", "the holder \"job\" needs the name of a job");
  if (!of_job && !spec.job.empty()) reader.Fail("job", "needs \"holder\": \"job\"");
}

void ReadViewHolder(FieldReader& reader, const Json& json, LeaseView& view) {
  FieldReader holder("holder", json);
  ReadName(holder, "kind", view.holder, ParseHolderKind);
  holder.ReadUnlessNull("pid", view.pid);
  holder.ReadUnlessNull("job", view.job);
  if (const Status read = holder.FinishAllowingOthers(); !read.ok())
    reader.Fail("holder", read.error().message);
}

}  // namespace

std::string_view Name(LeaseKnob knob) { return NameIn(kKnobs, knob); }
std::string_view Name(LeaseClass lease_class) { return NameIn(kClasses, lease_class); }
std::string_view Name(HolderKind kind) { return NameIn(kHolders, kind); }
std::string_view Name(LeaseState state) { return NameIn(kStates, state); }

Result<LeaseKnob> ParseLeaseKnob(std::string_view name) { return FindIn(kKnobs, name, "knob"); }
Result<LeaseClass> ParseLeaseClass(std::string_view name) {
  return FindIn(kClasses, name, "class of leases");
}
Result<HolderKind> ParseHolderKind(std::string_view name) {
  return FindIn(kHolders, name, "kind of holder");
}
Result<LeaseState> ParseLeaseState(std::string_view name) {
  return FindIn(kStates, name, "state of a lease");
}

std::string_view Words(LeaseKnob knob) {
  switch (knob) {
    case LeaseKnob::kGpuPowerLimit:
    case LeaseKnob::kCpuPowerLimit:
      return "power limit";
    case LeaseKnob::kGraphicsClock:
      return "graphics clock";
    case LeaseKnob::kMemoryClock:
      return "memory clock";
    case LeaseKnob::kPersistence:
      return "persistence mode";
  }
  return "knob";
}

std::string ToText(const Demand& demand) {
  if (const auto* exactly = std::get_if<Exactly>(&demand)) return zeus::ToText(exactly->value);
  if (const auto* cap = std::get_if<AtMost>(&demand)) return "at most " + zeus::ToText(cap->value);
  if (const auto* range = std::get_if<InRange>(&demand))
    return fmt::format("{} to {}", zeus::ToText(range->lowest), zeus::ToText(range->highest));
  return "on";
}

Status CheckDemand(LeaseKnob knob, const Demand& demand) {
  if (const auto* range = std::get_if<InRange>(&demand)) {
    if (!IsClock(knob)) return InvalidArgument("ranges are for clocks only; use at_most");
    if (!IsPositive(range->lowest) || !IsPositive(range->highest))
      return InvalidArgument("clocks must be positive numbers");
    if (range->lowest > range->highest) return InvalidArgument("the lowest is above the highest");
    return Ok();
  }
  const bool switches = std::holds_alternative<SwitchedOn>(demand);
  if (switches != (knob == LeaseKnob::kPersistence))
    return InvalidArgument("on is for persistence, and persistence takes nothing else");
  if (switches) return Ok();
  const auto* exactly = std::get_if<Exactly>(&demand);
  const Setting& value = exactly != nullptr ? exactly->value : std::get<AtMost>(demand).value;
  if (std::holds_alternative<Hertz>(value) != IsClock(knob))
    return InvalidArgument("clocks are in hertz, power limits in watts");
  if (!IsPositive(value)) return InvalidArgument("must be a positive number");
  return Ok();
}

Json ToJson(const KnobRequest& request) {
  return {{"device", request.key.device},
          {"knob", Name(request.key.knob)},
          {kDemands.at(request.demand.index()), DemandJson(request.demand)}};
}

Json ToJson(const KnobValue& value) {
  if (const auto* setting = std::get_if<Setting>(&value)) return ValueJson(*setting);
  if (const auto* range = std::get_if<ClockRange>(&value)) return RangeJson(range->min, range->max);
  return {{"on", std::get<Persistence>(value) == Persistence::kOn}};
}

Json ToJson(const LeaseSpec& spec) {
  Json json = {{"name", spec.name}};
  json["holder"] = spec.holder ? Json(Name(*spec.holder)) : Json(nullptr);
  json["ttl_seconds"] = spec.ttl ? Json(spec.ttl->count()) : Json(nullptr);
  if (!spec.job.empty()) json["job"] = spec.job;
  json["class"] = Name(spec.lease_class);
  if (!spec.request_id.empty()) json["request_id"] = spec.request_id;
  json["requests"] = Json::array();
  for (const KnobRequest& request : spec.requests) json["requests"].push_back(ToJson(request));
  return json;
}

Json ToJson(const LeaseView& view) {
  Json json = {{"id", view.id}, {"name", view.name}, {"subject", view.subject}};
  json["state"] = Name(view.state);
  json["version"] = view.version;
  json["class"] = Name(view.lease_class);
  json["holder"] = {{"kind", Name(view.holder)}};
  if (view.pid != 0) json["holder"]["pid"] = view.pid;
  if (!view.job.empty()) json["holder"]["job"] = view.job;
  json["expires_in_seconds"] =
      view.expires_in ? FiniteOrNull(view.expires_in->count()) : Json(nullptr);
  json["since"] = view.since;
  json["knobs"] = Json::array();
  for (const KnobView& knob : view.knobs) json["knobs"].push_back(KnobViewJson(knob));
  if (view.fell_back) json["fell_back"] = true;
  json["end_reason"] = view.end_reason.empty() ? Json(nullptr) : Json(view.end_reason);
  return json;
}

Result<std::vector<KnobRequest>> ParseKnobRequests(const Json& json) {
  ZEUS_TRY(auto requests, ParseList<KnobRequest>("requests", json, ParseRequest));
  std::set<KnobKey> seen;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!seen.insert(requests[i].key).second)
      return FieldError(fmt::format("requests[{}].knob", i), "this knob is asked for twice");
  }
  return requests;
}

Result<LeaseSpec> ParseLeaseSpec(const Json& json) {
  FieldReader reader("a lease", json);
  LeaseSpec spec;
  std::string lease_class(Name(spec.lease_class));
  Json requests;
  reader.ReadUnlessNull("name", spec.name);
  CheckText(reader, "name", spec.name);
  ReadHolder(reader, spec);
  reader.ReadUnlessNull("class", lease_class);
  reader.ReadUnlessNull("request_id", spec.request_id);
  CheckName(reader, "request_id", spec.request_id);
  reader.Require("requests", requests);
  const auto parsed_class = ParseLeaseClass(lease_class);
  if (!parsed_class.ok()) reader.Fail("class", parsed_class.error().message);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  ZEUS_RETURN_IF_ERROR(CheckTtl(spec.ttl));
  spec.lease_class = parsed_class.value();
  ZEUS_TRY(spec.requests, ParseKnobRequests(requests));
  return spec;
}

Result<LeaseView> ParseLeaseView(const Json& json) {
  FieldReader reader("a lease", json);
  LeaseView view;
  Json holder;
  Json knobs;
  std::optional<double> expires_in;
  reader.Require("id", view.id);
  reader.Read("name", view.name);
  reader.Read("subject", view.subject);
  ReadName(reader, "state", view.state, ParseLeaseState);
  reader.Require("version", view.version);
  ReadName(reader, "class", view.lease_class, ParseLeaseClass);
  reader.Require("holder", holder);
  ReadViewHolder(reader, holder, view);
  reader.Read("expires_in_seconds", expires_in);
  reader.Read("since", view.since);
  reader.Require("knobs", knobs);
  reader.ReadUnlessNull("end_reason", view.end_reason);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (expires_in) view.expires_in = Seconds(*expires_in);
  ZEUS_TRY(view.knobs, ParseList<KnobView>("knobs", knobs, ParseKnobView));
  return view;
}

namespace {

struct RefusalEntry {
  LeaseRefusal::Kind kind;
  int status;
  ErrorCode code;
  std::string_view name;
};

constexpr std::array kRefusals = {
    RefusalEntry{LeaseRefusal::Kind::kMalformed, 400, ErrorCode::kInvalidArgument,
                 "invalid_argument"},
    RefusalEntry{LeaseRefusal::Kind::kForbidden, 403, ErrorCode::kPermissionDenied,
                 "permission_denied"},
    RefusalEntry{LeaseRefusal::Kind::kUnknown, 404, ErrorCode::kNotFound, "not_found"},
    RefusalEntry{LeaseRefusal::Kind::kHeld, 409, ErrorCode::kConflict, "conflict"},
    RefusalEntry{LeaseRefusal::Kind::kEnded, 410, ErrorCode::kNotFound, "not_found"},
    RefusalEntry{LeaseRefusal::Kind::kOutOfBounds, 422, ErrorCode::kInvalidArgument,
                 "invalid_argument"},
    RefusalEntry{LeaseRefusal::Kind::kQuota, 429, ErrorCode::kUnavailable, "unavailable"},
    RefusalEntry{LeaseRefusal::Kind::kUnavailable, 503, ErrorCode::kUnavailable, "unavailable"},
};

const RefusalEntry& EntryOf(LeaseRefusal::Kind kind) {
  for (const RefusalEntry& entry : kRefusals)
    if (entry.kind == kind) return entry;
  return kRefusals.front();
}

}  // namespace

int StatusOf(LeaseRefusal::Kind kind) { return EntryOf(kind).status; }

Json ToJson(const LeaseRefusal& refusal) {
  Json error = {{"code", EntryOf(refusal.kind).name}, {"message", refusal.message}};
  if (refusal.key) {
    error["device"] = refusal.key->device;
    error["knob"] = Name(refusal.key->knob);
  }
  if (!refusal.since.empty()) error["since"] = refusal.since;
  if (!refusal.lease_class.empty()) error["class"] = refusal.lease_class;
  if (refusal.retry_after)
    error["retry_after_seconds"] = FiniteOrNull(refusal.retry_after->count());
  return {{"error", std::move(error)}};
}

Error ToError(const LeaseRefusal& refusal) { return {EntryOf(refusal.kind).code, refusal.message}; }

}  // namespace zeus::wire
