#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/client/node/node_daemon_client.h"
#include "zeus/wire/node/lease.h"

namespace zeus::testing {

// A node daemon that is a function: two GPUs of 100 to 300 W and leases on their limits and clocks.
class FakeDaemon {
 public:
  Result<http::Reply> Answer(const http::Call& call) {
    calls.push_back(call);
    if (absent > 0) {
      --absent;
      return Error{ErrorCode::kUnavailable, "connection refused"};
    }
    if (refusal) return Refuse(*refusal);
    if (call.path == "/v1/node") return Ok(node);
    if (call.path == "/v1/readings") return Ok(readings);
    if (call.path == "/v1/leases" && call.method == http::Method::kPost) return Create(call.body);
    if (call.path == "/v1/leases") return List();
    return Lease(call);
  }

  client::NodeDaemonClient::Send transport() {
    return [this](const http::Call& call) { return Answer(call); };
  }

  int absent = 0;                               // So many calls get no answer.
  std::optional<wire::LeaseRefusal> refusal{};  // Every call gets it.
  std::optional<Watts> cap{};                   // A lease of a higher class.
  std::string held{};                           // A device whose knobs another lease holds.
  std::vector<http::Call> calls{};
  std::map<std::string, wire::LeaseView> leases{};
  Json node = ParseJson(R"({"version": "1", "host": "n1", "gpus": [
    {"device": "GPU-1", "uuid": "GPU-1", "pci_address": "0000:01:00.0", "name": "gpu:0",
     "model": "A100", "vendor": "NVIDIA", "driver": "550",
     "power_limit": {"requested_watts": 300, "enforced_watts": 300},
     "ranges": {"gpu_power_limit": {"lowest": {"watts": 100}, "highest": {"watts": 300}},
                "graphics_clock": {"lowest": {"hertz": 2e8}, "highest": {"hertz": 1.4e9}}},
     "knobs": [{"knob": "gpu_power_limit", "lowest": {"watts": 150}, "highest": {"watts": 300}},
               {"knob": "graphics_clock", "lowest": {"hertz": 2e8}, "highest": {"hertz": 1.4e9}},
               {"knob": "persistence"}, {"knob": "of the future"}]},
    {"device": "GPU-2", "uuid": "GPU-2", "pci_address": "0000:02:00.0", "name": "gpu:1",
     "model": "A100", "vendor": "NVIDIA",
     "power_limit": {"requested_watts": 300, "enforced_watts": 300},
     "ranges": {"gpu_power_limit": {"lowest": {"watts": 100}, "highest": {"watts": 300}}},
     "knobs": [{"knob": "gpu_power_limit", "lowest": {"watts": 150}, "highest": {"watts": 300}}]}],
    "cpus": []})")
                  .value();
  Json readings = ParseJson(R"({"at_seconds": 5, "devices": [
    {"device": "GPU-1", "name": "gpu:0", "index": 0, "energy_joules": 1234.5, "power_watts": 211.5,
     "power_sigma_watts": 2.5, "age_seconds": 0.05, "temperature_celsius": 61,
     "requested_limit_watts": 300, "enforced_limit_watts": 300},
    {"device": "GPU-2", "name": "gpu:1", "index": 1, "energy_joules": null, "power_watts": 80}]})")
                      .value();

 private:
  static Result<http::Reply> Ok(const Json& body) {
    return http::Reply{.status = 200, .body = JsonText(body)};
  }
  static Result<http::Reply> Refuse(const wire::LeaseRefusal& refusal) {
    return http::Reply{.status = wire::StatusOf(refusal.kind),
                       .body = JsonText(wire::ToJson(refusal))};
  }
  Result<http::Reply> Unknown() {
    return Refuse(
        {.kind = wire::LeaseRefusal::Kind::kUnknown, .message = "there is no such lease"});
  }

  wire::KnobView View(const wire::KnobRequest& request) const {
    wire::KnobView view{.request = request};
    if (const auto* exactly = std::get_if<wire::Exactly>(&request.demand)) {
      Setting setting = exactly->value;
      if (cap && setting.index() == 0) setting = std::min(std::get<Watts>(setting), *cap);
      view.effective = view.enforced = wire::KnobValue(setting);
    }
    if (const auto* range = std::get_if<wire::InRange>(&request.demand))
      view.effective = wire::KnobValue(ClockRange{.min = range->lowest, .max = range->highest});
    return view;
  }

  std::optional<wire::LeaseRefusal> Conflict(const std::vector<wire::KnobRequest>& requests) const {
    for (const auto& request : requests)
      if (request.key.device == held)
        return wire::LeaseRefusal{.kind = wire::LeaseRefusal::Kind::kHeld,
                                  .message = "held by lease \"resnet\""};
    return std::nullopt;
  }

  Result<http::Reply> Create(const std::string& body) {
    ZEUS_TRY(const Json json, ParseJson(body));
    ZEUS_TRY(const wire::LeaseSpec spec, wire::ParseLeaseSpec(json));
    if (const auto conflict = Conflict(spec.requests)) return Refuse(*conflict);
    wire::LeaseView lease{.id = "lease_" + std::to_string(++made_),
                          .name = spec.name,
                          .subject = "uid:1001",
                          .state = wire::LeaseState::kActive,
                          .pid = 4711,
                          .since = "2026-11-18T12:00:00Z"};
    for (const auto& request : spec.requests) lease.knobs.push_back(View(request));
    leases[lease.id] = lease;
    return http::Reply{.status = 201, .body = JsonText(wire::ToJson(lease))};
  }

  Result<http::Reply> List() {
    Json list = Json::array();
    for (const auto& [id, lease] : leases) list.push_back(wire::ToJson(lease));
    return Ok({{"leases", std::move(list)}});
  }

  Result<http::Reply> Lease(const http::Call& call) {
    const std::string rest = call.path.substr(std::string("/v1/leases/").size());
    const std::string id = rest.substr(0, rest.find('/'));
    const auto found = leases.find(id);
    if (found == leases.end()) return Unknown();
    if (call.method == http::Method::kDelete) {
      found->second.state = wire::LeaseState::kEnded;
      const Json last = wire::ToJson(found->second);
      leases.erase(found);
      return Ok(last);
    }
    if (call.method == http::Method::kPut) {
      ZEUS_TRY(const Json json, ParseJson(call.body));
      ZEUS_TRY(const auto requests, wire::ParseKnobRequests(json["requests"]));
      found->second.knobs.clear();
      for (const auto& request : requests) found->second.knobs.push_back({.request = request});
    }
    for (wire::KnobView& knob : found->second.knobs) knob = View(knob.request);
    return Ok(wire::ToJson(found->second));
  }

  int made_ = 0;
};

}  // namespace zeus::testing
