#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/daemon/api/node_routes.h"
#include "zeus/live/node_history.h"

// Routes for those who look: the past of the devices, and who holds their knobs.
namespace zeus::daemon {
namespace {

http::Answer GetHistory(Daemon& daemon, const Call& call) {
  auto devices = ReadableDevices(daemon, call);
  if (!devices.ok()) return ToAnswer(devices.error());
  const auto since = NumberParameter(call, "since");
  if (!since.ok()) return ToAnswer(since.error());
  const auto step = WholeParameter(call, "step", 1, 3600);
  if (!step.ok()) return ToAnswer(step.error());
  auto document = daemon.history().Document({.devices = std::move(devices).value(),
                                             .since = since.value(),
                                             .step = static_cast<std::int64_t>(step.value())});
  if (!document.ok()) return ToAnswer(document.error());
  return {.body = std::move(document).value()};
}

// The lease that decides a knob. Everybody may know its class and since when it holds; its name and
// owner are for the owner and for administrators.
Json HolderJson(Daemon& daemon, const Call& call, const std::string& lease) {
  const auto all = daemon.book().View(DaemonItself(), EverythingGranted(), lease);
  const auto* view = std::get_if<wire::LeaseView>(&all);
  if (view == nullptr) return {};
  Json json = {{"class", wire::Name(view->lease_class)}, {"since", view->since}};
  const auto seen = daemon.book().View(*call.caller, call.grant, lease);
  if (!std::holds_alternative<wire::LeaseView>(seen)) return json;
  json["lease"] = view->id;
  json["name"] = view->name;
  json["subject"] = view->subject;
  json["holder"] = wire::Name(view->holder);
  if (view->pid != 0) json["pid"] = view->pid;
  if (!view->job.empty()) json["job"] = view->job;
  if (view->expires_in) json["expires_in_seconds"] = view->expires_in->count();
  return json;
}

Json KnobJson(Daemon& daemon, const Call& call, const wire::KnobKey& key,
              const KnobReport& report) {
  const auto value = [](const std::optional<wire::KnobValue>& one) {
    return one ? wire::ToJson(*one) : Json();
  };
  Json json = {{"device", key.device},
               {"knob", wire::Name(key.knob)},
               {"words", wire::Words(key.knob)},
               {"effective", value(report.resolution.effective)},
               {"enforced", value(report.enforced)},
               {"baseline", value(report.baseline)},
               {"foreign", report.foreign},
               {"suspended", report.suspended},
               {"leases", daemon.book().ClaimsOn(key).claims.size()}};
  if (!report.resolution.bound_by.empty())
    json["bound_by"] = HolderJson(daemon, call, report.resolution.bound_by);
  if (report.trouble) json["trouble"] = report.trouble->message;
  return json;
}

http::Answer GetKnobs(Daemon& daemon, const Call& call) {
  const auto devices = ReadableDevices(daemon, call);
  if (!devices.ok()) return ToAnswer(devices.error());
  Json knobs = Json::array();
  for (const KnobFacts& facts : daemon.desk().Knobs()) {
    const bool wanted = std::ranges::any_of(
        devices.value(), [&](const NodeDevice* device) { return device->id == facts.key.device; });
    if (!wanted) continue;
    if (const auto report = daemon.desk().Latest(facts.key))
      knobs.push_back(KnobJson(daemon, call, facts.key, *report));
  }
  return http::JsonAnswer(200, {{"knobs", std::move(knobs)}});
}

}  // namespace

void AddWatchRoutes(Daemon& daemon, RouteTable& table) {
  table.Add({.method = "GET",
             .pattern = "/v1/history",
             .handler = [&daemon](const Call& call) { return GetHistory(daemon, call); },
             .summary = "Power over the last ten minutes, two hours or two days",
             .query = {"devices", "since", "step"},
             .statuses = {200, 400, 403, 404},
             .answer_schema = "History"});
  table.Add({.method = "GET",
             .pattern = "/v1/knobs",
             .handler = [&daemon](const Call& call) { return GetKnobs(daemon, call); },
             .summary = "What holds on every knob, and which lease decided it",
             .query = {"devices"},
             .statuses = {200, 403, 404},
             .answer_schema = "Knobs"});
}

}  // namespace zeus::daemon
