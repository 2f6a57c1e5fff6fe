#include "zeus/daemon/api/node_openapi.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/http/openapi.h"

namespace zeus::daemon {
namespace {

std::string_view Meaning(int status) {
  switch (status) {
    case 200:
      return "Done";
    case 201:
      return "Created";
    case 204:
      return "Done; there is nothing to say";
    case 400:
      return "The request makes no sense; the message names the field";
    case 401:
      return "The token is missing or wrong";
    case 403:
      return "No rule grants this to the caller";
    case 404:
      return "There is no such thing, or it is another user's";
    case 409:
      return "Another lease holds the knob";
    case 410:
      return "The lease has ended";
    case 422:
      return "Out of the caller's bounds";
    case 429:
      return "Too much at once; Retry-After says when";
    default:
      return "The device or the daemon cannot do it now";
  }
}

Json Operation(const NodeRoute& route) {
  Json answers = Json::object();
  std::vector<int> statuses = route.statuses;
  if (!route.open) statuses.insert(statuses.end(), {401, 403, 429, 503});
  for (const int status : statuses) {
    Json answer = {{"description", Meaning(status)}};
    if (status >= 400)
      answer["content"] = http::SchemaContent("Error");
    else if (!route.answer_schema.empty() && status != 204)
      answer["content"] = http::SchemaContent(
          route.answer_schema, route.streamed ? "text/event-stream" : "application/json");
    answers[std::to_string(status)] = std::move(answer);
  }
  Json operation = {{"summary", route.summary},
                    {"parameters", http::ParameterList(route.pattern, route.query,
                                                       http::QueryFields::kOptional)}};
  if (route.scope) operation["description"] = fmt::format("Scope: {}", Name(*route.scope));
  if (!route.request_schema.empty())
    operation["requestBody"] = {{"content", http::SchemaContent(route.request_schema)}};
  if (!route.open) operation["security"] = http::TokenSecurity();
  operation["responses"] = std::move(answers);
  return operation;
}

// JSON Schemas by name. Those that are not here are objects whose fields docs/daemon.md tells.
constexpr const char* kSchemas = R"json({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {
  "type": "object", "required": ["code", "message"], "properties": {
    "code": {"type": "string"}, "message": {"type": "string"}, "device": {"type": "string"},
    "knob": {"type": "string"}, "since": {"type": "string"}, "class": {"type": "string"}}}}},
"Value": {"type": "object", "properties": {"watts": {"type": "number"}, "hertz": {"type": "number"},
  "lowest_hertz": {"type": "number"}, "highest_hertz": {"type": "number"}, "on": {"type": "boolean"}}},
"KnobRequest": {"type": "object", "required": ["device", "knob"], "properties": {
  "device": {"type": "string"},
  "knob": {"enum": ["gpu_power_limit", "graphics_clock", "memory_clock", "cpu_power_limit", "persistence"]},
  "exactly": {"$ref": "#/components/schemas/Value"}, "at_most": {"$ref": "#/components/schemas/Value"},
  "range": {"$ref": "#/components/schemas/Value"}, "on": {"const": true}}},
"KnobRequests": {"type": "object", "required": ["requests"], "properties": {"requests": {
  "type": "array", "items": {"$ref": "#/components/schemas/KnobRequest"}}}},
"LeaseSpec": {"type": "object", "required": ["requests"], "properties": {
  "name": {"type": "string"}, "holder": {"enum": ["connection", "process", "ttl", "job", "standing"]},
  "ttl_seconds": {"type": ["number", "null"], "minimum": 1, "maximum": 3600}, "job": {"type": "string"},
  "class": {"enum": ["user", "job", "site"]}, "request_id": {"type": "string"},
  "requests": {"type": "array", "maxItems": 256, "items": {"$ref": "#/components/schemas/KnobRequest"}}}},
"Budget": {"type": "object", "required": ["requests"], "properties": {
  "name": {"type": "string"}, "valid_seconds": {"type": "number", "minimum": 1, "maximum": 3600},
  "fallback_watts": {"type": "number", "description": "The cap of every device when no budget has come for valid_seconds; without it there is none then"},
  "requests": {"type": "array", "maxItems": 256, "items": {"$ref": "#/components/schemas/KnobRequest"}}}},
"Lease": {"type": "object", "required": ["id", "state", "version", "knobs"], "properties": {
  "id": {"type": "string"}, "name": {"type": "string"}, "subject": {"type": "string"},
  "state": {"enum": ["applying", "active", "suspended", "restoring", "ended"]},
  "version": {"type": "integer"}, "expires_in_seconds": {"type": ["number", "null"]},
  "knobs": {"type": "array", "items": {"type": "object"}}}},
"Leases": {"type": "object", "required": ["leases"], "properties": {"leases": {
  "type": "array", "items": {"$ref": "#/components/schemas/Lease"}}}},
"Reading": {"type": "object", "required": ["device", "name", "index"],
  "description": "A device now; what it cannot tell is null", "properties": {
  "device": {"type": "string"}, "name": {"type": "string"}, "index": {"type": "integer"},
  "energy_joules": {"type": ["number", "null"]}, "energy_sigma_joules": {"type": ["number", "null"]},
  "power_watts": {"type": ["number", "null"]}, "power_sigma_watts": {"type": ["number", "null"]},
  "age_seconds": {"type": ["number", "null"]}, "instant_power_watts": {"type": ["number", "null"]},
  "temperature_celsius": {"type": ["number", "null"]}, "graphics_clock_hertz": {"type": ["number", "null"]},
  "requested_limit_watts": {"type": ["number", "null"]}, "enforced_limit_watts": {"type": ["number", "null"]},
  "compute_utilization": {"type": "number"}, "memory_utilization": {"type": "number"},
  "dram_energy_joules": {"type": ["number", "null"]}, "source": {"type": "string"}, "reason": {"type": "string"},
  "flags": {"type": "array", "items": {"type": "string"}}}},
"Readings": {"type": "object", "required": ["at_seconds", "time", "devices"], "properties": {
  "at_seconds": {"type": "number", "description": "CLOCK_MONOTONIC of the machine"},
  "time": {"type": "string", "format": "date-time"},
  "devices": {"type": "array", "items": {"$ref": "#/components/schemas/Reading"}}}},
"Event": {"description": "The data of one event. A reading event has all chosen devices; lease and knob events are changes, with an id; dropped counts events that this client lost before",
  "oneOf": [{"$ref": "#/components/schemas/Readings"}, {"$ref": "#/components/schemas/Lease"},
    {"type": "object", "title": "knob", "required": ["device", "knob"]},
    {"type": "object", "title": "notice", "required": ["message"]}],
  "properties": {"dropped": {"type": "integer"}}},
"JobSpec": {"type": "object", "required": ["id"], "properties": {
  "id": {"type": "string"}, "uid": {"type": ["integer", "null"]},
  "devices": {"type": "array", "maxItems": 256, "items": {"type": "string"}},
  "gpu_positions": {"type": "array", "maxItems": 256, "items": {"type": "integer"},
    "description": "Instead of devices: positions of GPUs in the scheduler's list"},
  "cgroup": {"type": ["string", "null"]}, "pids": {"type": "array", "items": {"type": "integer"}},
  "labels": {"type": "object", "additionalProperties": {"type": "string"}},
  "power_limit_watts": {"type": ["number", "null"], "description": "At most this on each of its GPUs until it ends"}}},
"StepSpec": {"type": "object", "required": ["step", "pid"], "properties": {
  "step": {"type": "string"}, "pid": {"type": "integer"},
  "labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
"Holder": {"type": "object", "required": ["pid"], "properties": {"pid": {"type": "integer"}}}
})json";

}  // namespace

Json OpenApiDocument(const std::vector<NodeRoute>& routes, std::string_view version) {
  Json paths = Json::object();
  Json schemas = ParseJson(kSchemas).value();
  for (const NodeRoute& route : routes) {
    Json operation = Operation(route);
    for (const std::string_view schema : {route.request_schema, route.answer_schema})
      if (!schema.empty() && !schemas.contains(schema))
        schemas[std::string(schema)] = {{"type", "object"}};
    paths[std::string(route.pattern)][LowerCase(route.method)] = std::move(operation);
  }
  return {{"openapi", "3.1.0"},
          {"info", {{"title", "zeusd"}, {"version", version}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", std::move(schemas)}, {"securitySchemes", http::TokenSecuritySchemes()}}}};
}

}  // namespace zeus::daemon
