#include "zeus/base/json.h"
#include "zeus/server/openapi.h"

namespace zeus::server {
namespace {

constexpr const char* kPlanSchemas = R"json({
"PipelineProfile": {
  "type": "object", "required": ["stages", "blocking_power_watts", "instructions"],
  "properties": {
    "stages": {"type": "integer", "minimum": 1},
    "blocking_power_watts": {"type": "number", "minimum": 0},
    "instructions": {"type": "array", "items": {
      "type": "object", "required": ["stage", "instruction", "points"],
      "properties": {
        "stage": {"type": "integer", "minimum": 0}, "instruction": {"type": "string"},
        "points": {"type": "array", "items": {
          "type": "object", "required": ["clock_mhz", "time_seconds", "energy_joules"],
          "properties": {"clock_mhz": {"type": "number", "minimum": 0},
                         "time_seconds": {"type": "number", "minimum": 0},
                         "energy_joules": {"type": "number", "minimum": 0}}}}}}}}},
"PlanSpec": {
  "type": "object", "required": ["profile"], "additionalProperties": false,
  "properties": {
    "id": {"type": ["string", "null"], "maxLength": 200},
    "schedule": {"enum": ["1f1b", "gpipe", "interleaved", "early_recompute", "custom"],
                 "default": "1f1b"},
    "microbatches": {"type": "integer", "minimum": 0},
    "chunks": {"type": "integer", "minimum": 1, "default": 1},
    "custom_schedule": {"type": "string"},
    "data_parallel": {"type": "integer", "minimum": 1, "default": 1},
    "tensor_parallel": {"type": "integer", "minimum": 1, "default": 1},
    "clock_changes": {"type": "object", "additionalProperties": false, "properties": {
      "least_instructions": {"type": "integer", "minimum": 1, "default": 1},
      "latency_seconds": {"type": "number", "minimum": 0, "maximum": 60, "default": 0}}},
    "slowdown": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000, "default": 1.0},
    "profile": {"$ref": "#/components/schemas/PipelineProfile"}}},
"PaceReport": {
  "type": "object", "required": ["pace_seconds"], "additionalProperties": false,
  "properties": {"pace_seconds": {"type": ["number", "null"], "exclusiveMinimum": 0},
                 "rank": {"type": ["integer", "null"]}}},
"Plan": {
  "type": "object",
  "required": ["deadline_seconds", "time_seconds", "energy_joules", "waits_until_seconds",
               "bound_joules", "clock_changes", "stages"],
  "properties": {
    "deadline_seconds": {"type": "number"}, "time_seconds": {"type": "number"},
    "energy_joules": {"type": "number"}, "waits_until_seconds": {"type": "number"},
    "bound_joules": {"type": "number"}, "clock_changes": {"type": "integer"},
    "stages": {"type": "array", "items": {"type": "array", "items": {
      "type": "object",
      "required": ["instruction", "microbatch", "chunk", "clock_mhz", "start_seconds",
                   "time_seconds", "energy_joules"],
      "properties": {
        "instruction": {"type": "string"}, "microbatch": {"type": "integer"},
        "chunk": {"type": "integer"}, "clock_mhz": {"type": "number"},
        "start_seconds": {"type": "number"}, "time_seconds": {"type": "number"},
        "energy_joules": {"type": "number"}}}}}}},
"CurrentPlan": {
  "type": "object",
  "required": ["id", "version", "pace_seconds", "baseline_time_seconds", "baseline_energy_joules",
               "plan"],
  "properties": {
    "id": {"type": "string"}, "version": {"type": "integer", "minimum": 1},
    "pace_seconds": {"type": ["number", "null"]},
    "baseline_time_seconds": {"type": "number"}, "baseline_energy_joules": {"type": "number"},
    "plan": {"$ref": "#/components/schemas/Plan"}}},
"PlanFrontier": {
  "type": "object",
  "required": ["fastest_time_seconds", "baseline_time_seconds", "baseline_energy_joules",
               "points"],
  "properties": {
    "fastest_time_seconds": {"type": "number"}, "baseline_time_seconds": {"type": "number"},
    "baseline_energy_joules": {"type": "number"},
    "points": {"type": "array", "items": {
      "type": "object", "required": ["time_seconds", "energy_joules", "ticks"],
      "properties": {"time_seconds": {"type": "number"}, "energy_joules": {"type": "number"},
                     "ticks": {"type": "integer"}}}}}},
"PlanPage": {
  "type": "object", "required": ["plans", "next"],
  "properties": {"plans": {"type": "array", "items": {"type": "string"}},
                 "next": {"type": ["string", "null"]}}}
})json";

// What the clients of the reference implementation's pipeline optimizer exchange.
constexpr const char* kReferencePipelines = R"json({
"ReferencePipelineId": {"type": "string"},
"ReferenceNothing": {"type": "null"},
"ReferenceJobInfo": {
  "type": "object", "required": ["pp_degree", "dp_degree", "tp_degree", "world_size"],
  "properties": {
    "job_id": {"type": "string"}, "pp_degree": {"type": "integer", "minimum": 1},
    "dp_degree": {"type": "integer", "minimum": 1}, "tp_degree": {"type": "integer", "minimum": 1},
    "world_size": {"type": "integer", "minimum": 1},
    "job_metadata": {"type": ["string", "null"]}}},
"ReferenceRankInfo": {
  "type": "object", "required": ["rank", "dp_rank", "pp_rank", "tp_rank", "available_frequencies"],
  "properties": {
    "rank": {"type": "integer", "minimum": 0}, "dp_rank": {"type": "integer", "minimum": 0},
    "pp_rank": {"type": "integer", "minimum": 0}, "tp_rank": {"type": "integer", "minimum": 0},
    "available_frequencies": {"type": "array", "items": {"type": "integer"}}}},
"ReferenceFrequencySchedule": {
  "type": "object", "required": ["rank", "frequencies"],
  "properties": {"rank": {"type": "integer"},
                 "frequencies": {"type": "array", "items": {"type": "array"}}}},
"ReferenceProfilingResult": {
  "type": "object", "required": ["rank"],
  "properties": {
    "rank": {"type": "integer", "minimum": 0},
    "iter_time": {"type": "array", "items": {"type": "number"}},
    "iter_energy": {"type": "array", "items": {"type": "number"}},
    "time_breakdown": {"type": "object"}, "energy_breakdown": {"type": "object"},
    "forward_time": {"type": "object"}, "forward_energy": {"type": "object"},
    "backward_time": {"type": "object"}, "backward_energy": {"type": "object"}}}
})json";

}  // namespace

Json OpenApiPlanSchemas() {
  Json schemas = Json::parse(kPlanSchemas);
  schemas.update(Json::parse(kReferencePipelines));
  return schemas;
}

}  // namespace zeus::server
