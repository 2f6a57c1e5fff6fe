#include "zeus/daemon/api/node_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/live/node_documents.h"

namespace zeus::daemon {
namespace {

using namespace std::chrono_literals;

constexpr double kShortestPeriod = 0.02;
constexpr double kLongestPeriod = 60;

Json ToJson(const Setting& setting) { return wire::ToJson(wire::KnobValue(setting)); }

// Adds the settings from `lowest` to `highest`, where the hardware knows some only.
void AddSteps(const KnobChoices& choices, const Setting& lowest, const Setting& highest,
              Json& json) {
  if (choices.steps.empty()) return;
  Json steps = Json::array();
  for (const Setting& step : choices.steps)
    if (lowest <= step && step <= highest) steps.push_back(ToJson(step));
  json["steps"] = std::move(steps);
}

// The settings that the caller may choose on a knob: its range, narrowed by the caller's bounds.
Json KnobJson(const KnobFacts& facts, const Grant& grant, const Configuration& rules) {
  Json json = {{"knob", wire::Name(facts.key.knob)}};
  if (!facts.choices) return json;
  KnobBounds bounds;
  for (const auto* some : {&grant.bounds, &rules.bounds})
    if (const auto found = some->find(facts.key.knob); found != some->end())
      bounds = bounds.And(found->second);
  Setting lowest = facts.choices->lowest;
  Setting highest = facts.choices->highest;
  if (auto* watts = std::get_if<Watts>(&lowest)) {
    if (bounds.min_watts) *watts = std::max(*watts, *bounds.min_watts);
    if (bounds.max_share) highest = std::get<Watts>(highest) * *bounds.max_share;
  } else {
    auto& hertz = std::get<Hertz>(lowest);
    if (bounds.min_hertz) hertz = std::max(hertz, *bounds.min_hertz);
    if (bounds.max_share) highest = std::get<Hertz>(highest) * *bounds.max_share;
  }
  json["lowest"] = ToJson(lowest);
  json["highest"] = ToJson(highest);
  AddSteps(*facts.choices, lowest, highest, json);
  return json;
}

bool MayControl(const Grant& grant, const NodeDevice& device, const Caller& caller,
                const JobBook& jobs) {
  const Scope scope = device.gpu != nullptr ? Scope::kGpuControl : Scope::kCpuControl;
  if (!grant.scopes.Has(scope)) return false;
  if (grant.admin() || grant.all_devices || grant.devices.contains(device.id)) return true;
  return grant.devices_of_jobs && jobs.DevicesOf(caller).contains(device.id);
}

Json RangeOf(const KnobChoices& choices) {
  Json json = {{"lowest", ToJson(choices.lowest)}, {"highest", ToJson(choices.highest)}};
  AddSteps(choices, choices.lowest, choices.highest, json);
  return json;
}

// Adds "ranges", "knobs" that the caller may turn, their defaults, and the state of the device.
void AddKnobs(Daemon& daemon, const Call& call, const NodeDevice& device, Json& json) {
  const auto rules = daemon.configuration();
  const bool may = MayControl(call.grant, device, *call.caller, daemon.jobs());
  Json ranges = Json::object();
  Json knobs = Json::array();
  for (const KnobFacts& facts : daemon.desk().Knobs()) {
    if (facts.key.device != device.id) continue;
    if (facts.choices) ranges[std::string(wire::Name(facts.key.knob))] = RangeOf(*facts.choices);
    if (facts.default_limit)
      json["power_limit"]["default_watts"] = FiniteOrNull(facts.default_limit->value());
    if (facts.mode) json["persistence"] = *facts.mode == Persistence::kOn;
    if (may) knobs.push_back(KnobJson(facts, call.grant, *rules));
  }
  json["ranges"] = std::move(ranges);
  json["knobs"] = std::move(knobs);
  for (const DeviceDesk::DeviceState& state : daemon.desk().Devices()) {
    if (state.device != device.id) continue;
    json["stuck"] = state.stuck;
    json["lost"] = state.lost;
    json["maintenance_left_seconds"] =
        state.maintenance_left ? Json(state.maintenance_left->count()) : Json();
    json["foreign_changes"] = state.foreign_changes;
    json["restore_pending"] = state.restore_pending;
  }
}

Json PodsJson(const PodWatch* pods) {
  if (pods == nullptr) return nullptr;
  const PodWatch::State state = pods->state();
  return {{"kubelet_answers", state.asked && state.trouble.empty()},
          {"trouble", state.trouble.empty() ? Json() : Json(state.trouble)},
          {"containers", state.containers},
          {"unknown_devices", state.unknown_devices}};
}

Json BudgetJson(Daemon& daemon) {
  const auto state = daemon.budget_state();
  if (!state) return nullptr;
  const TimePoint now = daemon.clock().Now();
  return {{"server", state->server},
          {"node", state->node},
          {"state", state->fallback ? "fallback" : "granted"},
          {"granted_seconds_ago",
           state->granted ? Json(Seconds(now - *state->granted).count()) : Json()},
          {"trouble", state->trouble.empty() ? Json() : Json(state->trouble)}};
}

http::Answer GetNode(Daemon& daemon, const Call& call) {
  Json gpus = Json::array();
  for (const NodeDevice& device : daemon.devices().gpus()) {
    Json gpu = live::DescribeGpu(device, daemon.recorder().monitor());
    AddKnobs(daemon, call, device, gpu);
    gpus.push_back(std::move(gpu));
  }
  Json cpus = Json::array();
  for (const NodeDevice& device : daemon.devices().cpus()) {
    Json cpu = live::DescribeCpu(device);
    AddKnobs(daemon, call, device, cpu);
    cpus.push_back(std::move(cpu));
  }
  Json node = live::DescribeNode(daemon.recorder().node());
  node["boot_id"] = daemon.options().boot_clock().boot;
  node["pods"] = PodsJson(daemon.pods());
  node["budget"] = BudgetJson(daemon);
  node["gpus"] = std::move(gpus);
  node["cpus"] = std::move(cpus);
  return http::JsonAnswer(200, node);
}

Json BoundsJson(const std::map<wire::LeaseKnob, KnobBounds>& bounds) {
  Json json = Json::object();
  for (const auto& [knob, limits] : bounds) {
    Json one = Json::object();
    if (limits.min_watts) one["min_watts"] = limits.min_watts->value();
    if (limits.max_share) one["max_share"] = *limits.max_share;
    if (limits.min_hertz) one["min_hertz"] = limits.min_hertz->value();
    json[std::string(wire::Name(knob))] = std::move(one);
  }
  return json;
}

http::Answer GetWhoami(Daemon& daemon, const Call& call) {
  const Caller& caller = *call.caller;
  const Grant& grant = call.grant;
  Json devices = grant.devices;
  if (grant.all_devices || grant.admin()) devices = "all";
  return http::JsonAnswer(
      200, {{"subject", caller.subject},
            {"uid", caller.uid ? Json(*caller.uid) : Json()},
            {"gid", caller.uid ? Json(caller.gid) : Json()},
            {"groups", caller.groups},
            {"pid", caller.process ? Json(caller.process->pid) : Json()},
            {"contained", caller.contained},
            {"cgroup", caller.cgroup},
            {"jobs", daemon.jobs().JobsOf(caller)},
            {"rules", grant.rules},
            {"scopes", grant.scopes.names()},
            {"devices", std::move(devices)},
            {"bounds", BoundsJson(grant.bounds)},
            {"leases", {{"used", daemon.book().CountOf(caller.subject)}, {"most", grant.leases}}}});
}

}  // namespace

Result<std::vector<const NodeDevice*>> ReadableDevices(const Daemon& daemon, const Call& call) {
  const auto may_read = [&call](const NodeDevice& device) {
    return call.grant.scopes.Has(device.gpu != nullptr ? Scope::kGpuRead : Scope::kCpuRead);
  };
  std::vector<const NodeDevice*> devices;
  if (const auto names = call.Query("devices")) {
    for (const std::string_view name : SplitAtCommas(*names)) {
      ZEUS_TRY(const NodeDevice* device, FindDevice(daemon, std::string(name)));
      if (!may_read(*device))
        return Error{ErrorCode::kPermissionDenied,
                     fmt::format("reading {} needs the scope {}", Quote(name),
                                 device->gpu != nullptr ? "gpu-read" : "cpu-read")};
      devices.push_back(device);
    }
    return devices;
  }
  for (const auto* list : {&daemon.devices().gpus(), &daemon.devices().cpus()})
    for (const NodeDevice& device : *list)
      if (may_read(device)) devices.push_back(&device);
  return devices;
}

namespace {

http::Answer GetReadings(Daemon& daemon, const Call& call) {
  const auto devices = ReadableDevices(daemon, call);
  if (!devices.ok()) return ToAnswer(devices.error());
  daemon.ReadingsWanted();
  return {.body = ReadingText(daemon.recorder()).Document(devices.value())};
}

http::Answer GetEnergy(Daemon& daemon, const Call& call) {
  const auto devices = ReadableDevices(daemon, call);
  if (!devices.ok()) return ToAnswer(devices.error());
  const auto since = NumberParameter(call, "since");
  if (!since.ok()) return ToAnswer(since.error());
  if (!since.value())
    return ToAnswer(InvalidArgument("since: is missing: at_seconds of an earlier reading"));
  const auto until = NumberParameter(call, "until");
  if (!until.ok()) return ToAnswer(until.error());
  daemon.ReadingsWanted();
  const double now = daemon.clock().Now().time_since_epoch().count();
  const auto document = live::EnergyDocument(
      daemon.recorder().monitor(),
      {.devices = devices.value(), .since = *since.value(), .until = until.value().value_or(now)});
  if (!document.ok()) return ToAnswer(document.error());
  return http::JsonAnswer(200, document.value());
}

Result<EventFilter> ParseFilter(const Call& call, const std::vector<const NodeDevice*>& devices) {
  EventFilter filter{.subject = call.caller->subject, .sees_all = call.grant.admin()};
  if (const auto kinds = call.Query("events"))
    for (const std::string_view name : SplitAtCommas(*kinds)) {
      auto kind = ParseEventKind(name);
      if (!kind.ok()) return std::move(kind).error().While("events");
      filter.kinds.insert(kind.value());
    }
  // A caller who may not read devices follows none of their readings.
  for (const NodeDevice* device : devices) filter.devices.insert(device->id);
  if (devices.empty()) filter.devices.insert("none");
  ZEUS_TRY(const auto period, NumberParameter(call, "period"));
  filter.period = Seconds(std::clamp(period.value_or(1.0), kShortestPeriod, kLongestPeriod));
  return filter;
}

http::Answer GetStream(Daemon& daemon, const Call& call) {
  const auto devices = ReadableDevices(daemon, call);
  if (!devices.ok()) return ToAnswer(devices.error());
  const auto filter = ParseFilter(call, devices.value());
  if (!filter.ok()) return ToAnswer(filter.error());
  auto response = daemon.events().Open(filter.value(), call.request.last_event_id,
                                       daemon.ReadingsOf(filter.value().devices));
  if (!response.ok()) return ToAnswer(response.error());
  daemon.Followed();
  return {.pushed = std::move(response).value()};
}

http::Answer GetAudit(Daemon& daemon, const Call& call) {
  const auto after = WholeParameter(call, "after", 0, ~std::uint64_t{0} >> 1);
  if (!after.ok()) return ToAnswer(after.error());
  const auto limit = WholeParameter(call, "limit", 100, 1000);
  if (!limit.ok()) return ToAnswer(limit.error());
  const std::string subject = call.grant.admin() ? "" : call.caller->subject;
  Json entries = Json::array();
  for (const AuditEntry& entry : daemon.audit().After(after.value(), limit.value(), subject))
    entries.push_back(zeus::daemon::ToJson(entry));
  return http::JsonAnswer(200, {{"entries", std::move(entries)}});
}

}  // namespace

Result<const NodeDevice*> FindDevice(const Daemon& daemon, const std::string& id) {
  const NodeDevice* device = daemon.devices().Find(id);
  if (device != nullptr) return device;
  return Error{ErrorCode::kNotFound,
               fmt::format("there is no device {}: GET /v1/node lists them", Quote(id))};
}

void AddNodeRoutes(Daemon& daemon, RouteTable& table) {
  const auto add = [&daemon, &table](NodeRoute route, auto handler) {
    route.handler = [&daemon, handler](const Call& call) { return handler(daemon, call); };
    route.method = "GET";
    table.Add(std::move(route));
  };
  add({.pattern = "/v1/node",
       .summary = "The devices of this machine, with the knobs that the caller may turn",
       .answer_schema = "Node"},
      GetNode);
  add({.pattern = "/v1/whoami",
       .summary = "The caller as the daemon understands it, and what it may do",
       .answer_schema = "Whoami"},
      GetWhoami);
  add({.pattern = "/v1/readings",
       .summary = "The latest readings, from the recording",
       .query = {"devices"},
       .statuses = {200, 403, 404},
       .answer_schema = "Readings",
       .work = http::Work::kImmediate},
      GetReadings);
  add({.pattern = "/v1/energy",
       .summary = "Energy between two moments of the recording, by the monotonic clock",
       .query = {"devices", "since", "until"},
       .statuses = {200, 400, 403, 404},
       .answer_schema = "Energy"},
      GetEnergy);
  add({.pattern = "/v1/stream",
       .summary = "Readings, leases, knobs and notices as server-sent events",
       .query = {"devices", "events", "period"},
       .statuses = {200, 400, 403, 404, 503},
       .answer_schema = "Event",
       .streamed = true,
       .work = http::Work::kImmediate},
      GetStream);
  add({.pattern = "/v1/audit",
       .summary = "The caller's entries of the audit log; all for administrators",
       .query = {"after", "limit"},
       .statuses = {200, 400},
       .answer_schema = "Audit"},
      GetAudit);
}

}  // namespace zeus::daemon
