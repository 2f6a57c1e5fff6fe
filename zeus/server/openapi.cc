#include "zeus/server/openapi.h"

#include <string>

#include "zeus/base/json.h"
#include "zeus/http/openapi_document.h"

namespace zeus::server {
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
      return "There is no such job";
    case 401:
      return "The token is missing or wrong";
    case 403:
      return "The token may not do this, a quota is full, or a foreign page asked for it";
    case 404:
      return "There is no such job, trial or plan";
    case 409:
      return "At odds with what is already there";
    case 422:
      return "The request makes no sense; the error names the field";
    case 429:
      return "Too many wrong tokens came from this address";
    default:
      return "Try again later";
  }
}

// --- JSON Schemas, by the names that routes use ---

// Bodies that clients send.
constexpr const char* kRequestSchemas = R"json({
"JobSpec": {
  "type": "object",
  "required": ["batch_sizes", "default_batch_size", "max_power_watts", "gpu_model"],
  "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "maxLength": 200},
    "prefix": {"type": "string", "maxLength": 200},
    "batch_sizes": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1},
    "default_batch_size": {"type": "integer", "minimum": 1},
    "eta": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
    "beta": {"type": ["number", "null"], "exclusiveMinimum": 0, "default": 2.0},
    "target_metric": {"type": "number", "default": 0.5},
    "higher_is_better": {"type": "boolean", "default": true},
    "max_epochs": {"type": "integer", "minimum": 1, "default": 100},
    "policy": {"type": "string", "default": "knowledge_gradient"},
    "pruning_rounds": {"type": "integer", "minimum": 0, "default": 2},
    "window": {"type": "integer", "minimum": 0, "default": 0},
    "prior_mean": {"type": "number", "default": 0},
    "prior_precision": {"type": "number", "minimum": 0, "default": 0},
    "explorations": {"type": "integer", "minimum": 0, "default": 2},
    "seed": {"type": ["integer", "null"], "minimum": 0},
    "max_power_watts": {"type": "number", "exclusiveMinimum": 0},
    "number_of_gpus": {"type": "integer", "minimum": 1, "default": 1},
    "gpu_model": {"type": "string", "minLength": 1},
    "translate_gpu_models": {"type": "boolean", "default": true},
    "deadline_seconds": {"type": ["number", "null"], "exclusiveMinimum": 0},
    "lease_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 900},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
"TrialRequest": {
  "type": "object", "additionalProperties": false,
  "properties": {
    "gpu_model": {"type": ["string", "null"], "maxLength": 1000},
    "max_power_watts": {"type": ["number", "null"], "exclusiveMinimum": 0},
    "recurrence": {"type": ["integer", "null"], "minimum": 0},
    "request_id": {"type": ["string", "null"], "maxLength": 1000},
    "lease_seconds": {"type": ["number", "null"], "minimum": 1, "maximum": 2592000},
    "batch_size": {"type": ["integer", "null"], "minimum": 1},
    "baseline": {"type": ["boolean", "null"], "default": false},
    "start": {"$ref": "#/components/schemas/StartWish"}}},
"StartWish": {
  "type": "object", "additionalProperties": false, "required": ["goal"],
  "description": "the trial may wait for clean or cheap power; finish_within_seconds or max_wait_seconds is needed",
  "properties": {
    "goal": {"type": "string", "enum": ["carbon", "price"]},
    "finish_within_seconds": {"type": "number", "minimum": 0},
    "max_wait_seconds": {"type": "number", "minimum": 0},
    "margin_seconds": {"type": "number", "minimum": 0, "default": 300},
    "duration_seconds": {"type": "number", "minimum": 0}}},
"PlannedStart": {
  "type": "object", "required": ["start_at", "start_in_seconds", "why", "advice"],
  "description": "no trial began: ask again when start_in_seconds have passed, or earlier",
  "properties": {
    "start_at": {"type": "string", "format": "date-time"},
    "start_in_seconds": {"type": "number", "exclusiveMinimum": 0},
    "why": {"type": "string"},
    "advice": {"type": "object"}}},
"StartedTrialOrStart": {
  "anyOf": [{"$ref": "#/components/schemas/StartedTrial"},
            {"$ref": "#/components/schemas/PlannedStart"}]},
"TrialReport": {
  "type": "object", "additionalProperties": false,
  "required": ["epoch", "time_seconds", "energy_joules", "metric"],
  "properties": {
    "epoch": {"type": "integer", "minimum": 1},
    "time_seconds": {"type": "number", "minimum": 0},
    "energy_joules": {"type": "number", "minimum": 0},
    "metric": {"type": "number"},
    "epoch_energy_joules": {"type": ["number", "null"], "minimum": 0},
    "epoch_time_seconds": {"type": ["number", "null"], "minimum": 0},
    "power_limit_watts": {"type": ["number", "null"], "minimum": 0},
    "undisturbed": {"type": ["boolean", "null"], "default": false},
    "shared": {"type": ["boolean", "null"], "default": false},
    "unmeasured": {"type": ["boolean", "null"], "default": false}}},
"TrialEnd": {
  "type": "object", "additionalProperties": false, "required": ["status"],
  "properties": {
    "status": {"enum": ["stopped", "failed"]},
    "reason": {"type": ["string", "null"], "maxLength": 1000}}},
"EpochCost": {
  "type": "object", "additionalProperties": false,
  "required": ["gpu_model", "batch_size", "time_seconds", "energy_joules"],
  "properties": {
    "gpu_model": {"type": "string", "minLength": 1, "maxLength": 1000},
    "batch_size": {"type": "integer", "minimum": 1},
    "time_seconds": {"type": "number", "minimum": 0},
    "energy_joules": {"type": "number", "minimum": 0},
    "max_power_watts": {"type": ["number", "null"], "exclusiveMinimum": 0}}}
})json";

// Bodies of our answers. Later versions may add fields.
constexpr const char* kAnswers = R"json({
"Error": {
  "type": "object", "required": ["error"],
  "properties": {"error": {
    "type": "object", "required": ["code", "message", "field"],
    "properties": {"code": {"type": "string"}, "message": {"type": "string"},
                   "field": {"type": ["string", "null"]}}}}},
"NameSpaces": {"type": "object", "required": ["namespaces"], "properties": {"namespaces": {"type": "array",
  "items": {"type": "object", "required": ["name", "jobs", "trials", "plans"], "properties": {
    "name": {"type": "string"}, "jobs": {"type": "integer"}, "trials": {"type": "integer"},
    "plans": {"type": "integer"}}}}}},
"Caller": {"type": "object", "required": ["user", "name_space", "may_change"], "properties": {
  "user": {"type": ["string", "null"]}, "name_space": {"type": "string"},
  "may_change": {"type": "boolean"}}},
"Health": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
"OpenApi": {"type": "object", "required": ["openapi", "paths"]},
"Job": {
  "type": "object",
  "required": ["spec", "seed", "created_at", "recurrences", "trials", "events", "stage",
               "best_batch_size", "least_cost_joules", "least_cost_batch_size"],
  "properties": {
    "spec": {"$ref": "#/components/schemas/JobSpec"},
    "seed": {"type": "integer", "minimum": 0},
    "created_at": {"type": "string"},
    "recurrences": {"type": "integer"}, "trials": {"type": "integer"},
    "events": {"type": "integer"},
    "least_cost_joules": {"type": ["number", "null"]},
    "least_cost_batch_size": {"type": ["integer", "null"]},
    "stage": {"type": ["string", "null"]},
    "best_batch_size": {"type": ["integer", "null"]}}},
"JobPage": {
  "type": "object", "required": ["jobs", "next"],
  "properties": {"jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}},
                 "next": {"type": ["string", "null"]}}},
"Trial": {
  "type": "object",
  "required": ["job_id", "number", "recurrence", "attempt", "batch_size", "role", "status",
               "started_at", "lease_until", "epochs", "time_seconds", "energy_joules",
               "cost_joules", "reason"],
  "properties": {
    "job_id": {"type": "string"}, "number": {"type": "integer", "minimum": 1},
    "recurrence": {"type": "integer", "minimum": 0}, "attempt": {"type": "integer", "minimum": 0},
    "batch_size": {"type": "integer", "minimum": 1},
    "role": {"enum": ["exploring", "concurrent", "exploiting", "baseline"]},
    "gpu_model": {"type": "string"}, "max_power_watts": {"type": "number"},
    "status": {"enum": ["dispatched", "reporting", "converged", "stopped", "failed", "expired"]},
    "request_id": {"type": "string"}, "started_at": {"type": "string"},
    "lease_seconds": {"type": "number"}, "lease_until": {"type": "string"},
    "ended_at": {"type": ["string", "null"]}, "epochs": {"type": "integer", "minimum": 0},
    "time_seconds": {"type": "number"}, "energy_joules": {"type": "number"},
    "cost_joules": {"type": "number"}, "metric": {"type": ["number", "null"]},
    "epoch_cost_joules": {"type": ["number", "null"]},
    "power_limit_watts": {"type": ["number", "null"]}, "reason": {"type": "string"},
    "undisturbed": {"type": "boolean"}, "shared": {"type": "boolean"},
    "unmeasured": {"type": "boolean"}, "why": {"type": "string"}}},
"TrialPage": {
  "type": "object", "required": ["trials", "next"],
  "properties": {"trials": {"type": "array", "items": {"$ref": "#/components/schemas/Trial"}},
                 "next": {"type": ["integer", "null"]}}},
"StartedTrial": {
  "type": "object", "required": ["trial", "max_epochs", "unprofiled_batch_sizes"],
  "properties": {
    "trial": {"$ref": "#/components/schemas/Trial"},
    "max_epochs": {"type": "integer", "minimum": 0},
    "unprofiled_batch_sizes": {"type": "array", "items": {"type": "integer"}}}},
"ReportAnswer": {
  "type": "object", "required": ["stop", "converged", "retry", "message", "trial"],
  "properties": {
    "stop": {"type": "boolean"}, "converged": {"type": "boolean"}, "retry": {"type": "boolean"},
    "message": {"type": "string"}, "trial": {"$ref": "#/components/schemas/Trial"}}},
"Arms": {
  "type": "object", "required": ["gpu_model", "stage", "best_batch_size", "arms"],
  "properties": {
    "gpu_model": {"type": "string"}, "stage": {"type": "string"},
    "best_batch_size": {"type": "integer"},
    "next": {"$ref": "#/components/schemas/NextChoice"},
    "eta": {"type": "number", "description": "this and what follows: asked for with eta"},
    "own_best_batch_size": {"type": "integer"},
    "measured": {"type": "array", "items": {"$ref": "#/components/schemas/MeasuredArm"}},
    "energy_change": {"$ref": "#/components/schemas/RelativeChange"},
    "time_change": {"$ref": "#/components/schemas/RelativeChange"},
    "notes": {"type": "array", "items": {"type": "string"}},
    "arms": {"type": "array", "items": {
      "type": "object",
      "required": ["batch_size", "state", "runs", "converged", "epoch_cost_profiled"],
      "properties": {
        "batch_size": {"type": "integer"}, "state": {"enum": ["untried", "candidate", "dropped"]},
        "runs": {"type": "integer"}, "converged": {"type": "integer"},
        "epochs": {"type": ["number", "null"]}, "epoch_cost_joules": {"type": ["number", "null"]},
        "epoch_cost_profiled": {"type": "boolean"}, "cost_joules": {"type": ["number", "null"]},
        "cost_sigma_joules": {"type": ["number", "null"]}}}}}},
"UsualAmounts": {
  "type": "object", "required": ["count"],
  "properties": {
    "count": {"type": "integer", "minimum": 0},
    "energy_joules": {"type": ["number", "null"]},
    "energy_sigma_joules": {"type": ["number", "null"]},
    "time_seconds": {"type": ["number", "null"]},
    "time_sigma_seconds": {"type": ["number", "null"]},
    "cost_joules": {"type": ["number", "null"]},
    "cost_sigma_joules": {"type": ["number", "null"]}}},
"Savings": {
  "type": "object",
  "required": ["job_id", "gpu_model", "baseline_job", "default_batch_size", "baseline", "zeus",
               "runs", "shared_runs", "saved", "unknown_because"],
  "properties": {
    "job_id": {"type": "string"}, "gpu_model": {"type": "string"},
    "baseline_job": {"type": "string"}, "default_batch_size": {"type": "integer"},
    "baseline": {"$ref": "#/components/schemas/UsualAmounts"},
    "zeus": {"$ref": "#/components/schemas/UsualAmounts"},
    "runs": {"type": "integer"}, "shared_runs": {"type": "integer"},
    "saved": {
      "type": ["object", "null"],
      "required": ["energy_percent", "energy_sigma_percent", "energy_joules",
                   "energy_sigma_joules", "energy_kwh", "energy_sigma_kwh", "time_percent",
                   "time_sigma_percent", "time_seconds", "time_sigma_seconds", "cost_percent",
                   "cost_sigma_percent", "cost_joules", "cost_sigma_joules"],
      "properties": {
        "carbon": {
          "type": "object", "description": "where the server was started with --carbon",
          "required": ["grams_co2e", "grams_co2e_sigma", "energy_joules", "missing_joules",
                       "sources", "estimated", "notes"],
          "properties": {
            "grams_co2e": {"type": ["number", "null"]},
            "grams_co2e_sigma": {"type": ["number", "null"]},
            "energy_joules": {"type": "number"}, "missing_joules": {"type": "number"},
            "sources": {"type": "array", "items": {"type": "string"}},
            "estimated": {"type": "boolean"},
            "notes": {"type": "array", "items": {"type": "string"}}}},
        "cost": {
          "type": "object", "description": "money, where the server was started with --price",
          "required": ["amount", "amount_sigma", "currency", "energy_joules", "missing_joules",
                       "sources", "notes"],
          "properties": {
            "amount": {"type": ["number", "null"]}, "amount_sigma": {"type": ["number", "null"]},
            "currency": {"type": "string"},
            "energy_joules": {"type": "number"}, "missing_joules": {"type": "number"},
            "sources": {"type": "array", "items": {"type": "string"}},
            "notes": {"type": "array", "items": {"type": "string"}}}}},
      "additionalProperties": {"type": "number"}},
    "unknown_because": {"type": ["string", "null"]}}},
"Event": {
  "type": "object", "required": ["job_id", "sequence", "at", "kind", "trial", "detail"],
  "properties": {
    "job_id": {"type": "string"}, "sequence": {"type": "integer", "minimum": 1},
    "at": {"type": "string"}, "kind": {"type": "string"}, "trial": {"type": ["integer", "null"]},
    "detail": {"type": ["object", "null"]}}},
"EventPage": {
  "type": "object", "required": ["events", "next"],
  "properties": {"events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
                 "next": {"type": ["integer", "null"]}}}
})json";

// Bodies of the answers that pages show.
constexpr const char* kOverviews = R"json({
"NextChoice": {
  "type": ["object", "null"], "description": "the choice for a recurrence that began now",
  "required": ["batch_size", "role", "why", "settled", "outlook"],
  "properties": {
    "batch_size": {"type": "integer", "minimum": 1},
    "role": {"enum": ["exploring", "concurrent", "exploiting", "baseline"]},
    "why": {"type": "string"}, "settled": {"type": "boolean"}, "outlook": {"type": "string"}}},
"RelativeChange": {
  "type": ["object", "null"], "required": ["percent", "sigma_percent"],
  "properties": {"percent": {"type": "number"}, "sigma_percent": {"type": ["number", "null"]}}},
"MeasuredArm": {
  "type": "object",
  "required": ["batch_size", "runs", "reached", "energy_joules", "energy_sigma_joules",
               "time_seconds", "time_sigma_seconds", "cost_joules", "cost_sigma_joules"],
  "properties": {
    "batch_size": {"type": "integer"}, "runs": {"type": "integer", "minimum": 0},
    "reached": {"type": "integer", "minimum": 0},
    "energy_joules": {"type": ["number", "null"]},
    "energy_sigma_joules": {"type": ["number", "null"]},
    "time_seconds": {"type": ["number", "null"]},
    "time_sigma_seconds": {"type": ["number", "null"]},
    "cost_joules": {"type": ["number", "null"]},
    "cost_sigma_joules": {"type": ["number", "null"]}}},
"JobOverview": {
  "type": "object", "required": ["job", "next", "savings", "latest_trial", "running"],
  "properties": {
    "job": {"$ref": "#/components/schemas/Job"},
    "next": {"$ref": "#/components/schemas/NextChoice"},
    "savings": {"$ref": "#/components/schemas/Savings"},
    "latest_trial": {"type": ["object", "null"]},
    "running": {"type": "array", "items": {"$ref": "#/components/schemas/Trial"}}}},
"JobOverviewPage": {
  "type": "object", "required": ["jobs", "next"],
  "properties": {"jobs": {"type": "array", "items": {"$ref": "#/components/schemas/JobOverview"}},
                 "next": {"type": ["string", "null"]}}},
"Recurrence": {
  "type": "object",
  "required": ["recurrence", "tries", "first_batch_size", "batch_size", "gpu_model", "role",
               "converged", "under_way", "failed", "profiling", "shared", "unmeasured",
               "started_at", "ended_at", "energy_joules", "time_seconds", "cost_joules"],
  "properties": {
    "recurrence": {"type": "integer", "minimum": 0}, "tries": {"type": "integer", "minimum": 1},
    "first_batch_size": {"type": "integer"}, "batch_size": {"type": "integer"},
    "gpu_model": {"type": "string"},
    "role": {"enum": ["exploring", "concurrent", "exploiting", "baseline"]},
    "converged": {"type": "boolean"}, "under_way": {"type": "boolean"},
    "failed": {"type": "boolean"}, "profiling": {"type": "boolean"},
    "shared": {"type": "boolean"}, "unmeasured": {"type": "boolean"},
    "started_at": {"type": "string"}, "ended_at": {"type": ["string", "null"]},
    "energy_joules": {"type": "number"}, "time_seconds": {"type": "number"},
    "cost_joules": {"type": "number"}}},
"RecurrencePage": {
  "type": "object", "required": ["recurrences", "next"],
  "properties": {
    "recurrences": {"type": "array", "items": {"$ref": "#/components/schemas/Recurrence"}},
    "next": {"type": ["integer", "null"]}}},
"SpanSavings": {
  "type": "object",
  "required": ["from", "until", "jobs", "recurrences", "charged_joules", "energy_joules",
               "energy_sigma_joules", "energy_kwh", "energy_sigma_kwh", "energy_percent",
               "energy_sigma_percent", "time_seconds", "time_sigma_seconds", "unknown_jobs"],
  "properties": {
    "from": {"type": "string"}, "until": {"type": "string"}, "jobs": {"type": "integer"},
    "recurrences": {"type": "integer"}, "charged_joules": {"type": "number"},
    "energy_joules": {"type": "number"}, "energy_sigma_joules": {"type": "number"},
    "energy_kwh": {"type": "number"}, "energy_sigma_kwh": {"type": "number"},
    "energy_percent": {"type": ["number", "null"]}, "energy_sigma_percent": {"type": "number"},
    "time_seconds": {"type": "number"}, "time_sigma_seconds": {"type": "number"},
    "unknown_jobs": {"type": "array", "items": {"type": "string"}}}},
"SpanSavingsList": {
  "type": "object", "required": ["spans"],
  "properties": {"spans": {"type": "array",
                           "items": {"$ref": "#/components/schemas/SpanSavings"}}}},
"PlanSummary": {
  "type": "object",
  "required": ["id", "created_at", "version", "pace_seconds", "stages", "microbatches", "schedule",
               "replicas", "gpus", "solved"],
  "properties": {
    "id": {"type": "string"}, "created_at": {"type": "string"},
    "version": {"type": "integer", "minimum": 1}, "pace_seconds": {"type": ["number", "null"]},
    "stages": {"type": "integer"}, "microbatches": {"type": "integer"},
    "schedule": {"type": "string"}, "replicas": {"type": "integer"}, "gpus": {"type": "integer"},
    "solved": {
      "type": ["object", "null"], "description": "null: its frontier is not in memory",
      "required": ["time_seconds", "energy_joules", "baseline_time_seconds",
                   "baseline_energy_joules"],
      "properties": {
        "time_seconds": {"type": "number"}, "energy_joules": {"type": "number"},
        "baseline_time_seconds": {"type": "number"},
        "baseline_energy_joules": {"type": "number"}}}}},
"PlanSummaryPage": {
  "type": "object", "required": ["plans", "next"],
  "properties": {"plans": {"type": "array", "items": {"$ref": "#/components/schemas/PlanSummary"}},
                 "next": {"type": ["string", "null"]}}}
})json";

// Bodies of the power budget.
constexpr const char* kBudget = R"json({
"BudgetWish": {
  "type": "object", "additionalProperties": false, "required": ["watts"],
  "properties": {
    "watts": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e10},
    "domain": {"type": ["string", "null"], "description": "all domains together by default"},
    "confirm": {"type": "boolean", "default": false,
                "description": "set also what is not enough for the lowest limits, or a quarter more than now"},
    "look_only": {"type": "boolean", "default": false}}},
"BudgetDevice": {
  "type": "object",
  "required": ["id", "model", "cap_watts", "committed_watts", "fallback_watts", "drawn_watts"],
  "properties": {
    "id": {"type": "string"}, "model": {"type": "string"}, "cap_watts": {"type": "number"},
    "committed_watts": {"type": "number"}, "fallback_watts": {"type": "number"},
    "drawn_watts": {"type": ["number", "null"]}}},
"Budget": {
  "type": "object",
  "required": ["domains", "nodes", "infeasible", "missing_watts", "mean_slowdown",
               "worst_slowdown", "current", "troubles", "doubts"],
  "properties": {
    "domains": {"type": "array", "items": {
      "type": "object",
      "required": ["name", "parent", "watts", "limit_watts", "committed_watts", "drawn_watts",
                   "free_watts", "price_per_watt"],
      "properties": {
        "name": {"type": "string"}, "parent": {"type": ["string", "null"]},
        "watts": {"type": "number"},
        "limit_watts": {"type": "number", "description": "may be granted now"},
        "committed_watts": {"type": "number"}, "drawn_watts": {"type": "number"},
        "free_watts": {"type": "number"}, "price_per_watt": {"type": "number"}}}},
    "nodes": {"type": "array", "items": {
      "type": "object",
      "required": ["name", "domain", "silent", "guarded", "committed_watts", "devices"],
      "properties": {
        "name": {"type": "string"}, "domain": {"type": "string"}, "silent": {"type": "boolean"},
        "guarded": {"type": "boolean"}, "committed_watts": {"type": "number"},
        "devices": {"type": "array", "items": {"$ref": "#/components/schemas/BudgetDevice"}}}}},
    "infeasible": {"type": "boolean"}, "missing_watts": {"type": "number"},
    "mean_slowdown": {"type": ["number", "null"], "description": "of the GPUs that work"},
    "worst_slowdown": {"type": ["number", "null"]},
    "current": {"type": "boolean", "description": "false: another server has taken over"},
    "troubles": {"type": "array", "items": {"type": "string"}},
    "doubts": {"type": "array", "items": {"type": "string"}},
    "effect": {"type": "array", "items": {"type": "string"}, "description": "of a PUT"}}},
"BudgetJobs": {
  "type": "object", "required": ["jobs", "idle"],
  "properties": {
    "jobs": {"type": "array", "items": {
      "type": "object",
      "required": ["name", "gpus", "weight", "limit_watts", "taken_watts", "slowdown",
                   "marginal_per_watt", "bound_missed", "assumed"],
      "properties": {
        "name": {"type": "string"}, "gpus": {"type": "integer"}, "weight": {"type": "number"},
        "limit_watts": {"type": "number"}, "taken_watts": {"type": "number"},
        "slowdown": {"type": "number"}, "marginal_per_watt": {"type": "number"},
        "bound_missed": {"type": "boolean"}, "assumed": {"type": "boolean"}}}},
    "idle": {"type": "object", "required": ["gpus", "taken_watts"], "properties": {
      "gpus": {"type": "integer"}, "taken_watts": {"type": "number"}}}}},
"BudgetTarget": {
  "type": "object", "required": ["start", "end"],
  "properties": {
    "id": {"type": "string"}, "domain": {"type": ["string", "null"]},
    "start": {"type": "string", "format": "date-time"},
    "end": {"type": "string", "format": "date-time"},
    "watts": {"type": ["number", "null"], "minimum": 0,
              "description": "null: the budget without targets"},
    "reason": {"type": ["string", "null"], "maxLength": 1000},
    "confirm": {"type": "boolean", "default": false}}},
"BudgetSchedule": {
  "type": "object", "required": ["targets"],
  "properties": {"targets": {"type": "array",
                             "items": {"$ref": "#/components/schemas/BudgetTarget"}}}},
"BudgetEvent": {
  "type": "object", "required": ["at", "message"],
  "properties": {"at": {"type": "string", "format": "date-time"}, "message": {"type": "string"}}},
"NodeReport": {
  "type": "object", "additionalProperties": false,
  "required": ["session", "sequence", "applied", "devices"],
  "properties": {
    "session": {"type": "string", "minLength": 1, "maxLength": 256,
                "description": "differs for every start of the node's daemon"},
    "sequence": {"type": "integer", "minimum": 0},
    "applied": {"type": "integer", "minimum": 0, "description": "number of the newest grant that holds"},
    "guarded": {"type": "boolean", "default": false},
    "devices": {"type": "array", "maxItems": 256, "items": {
      "type": "object", "additionalProperties": false,
      "required": ["id", "lowest_watts", "highest_watts", "cap_watts", "fallback_watts"],
      "properties": {
        "id": {"type": "string"}, "model": {"type": "string"},
        "lowest_watts": {"type": "number"}, "highest_watts": {"type": "number"},
        "cap_watts": {"type": "number"}, "fallback_watts": {"type": "number"},
        "power_watts": {"type": ["number", "null"]},
        "utilization": {"type": ["number", "null"], "minimum": 0, "maximum": 1}}}},
    "jobs": {"type": "array", "maxItems": 1024, "items": {
      "type": "object", "additionalProperties": false, "required": ["id", "devices"],
      "properties": {
        "id": {"type": "string"}, "name": {"type": "string"},
        "devices": {"type": "array", "items": {"type": "string"}},
        "partition": {"type": "string"}, "max_slowdown": {"type": ["number", "null"], "minimum": 1},
        "curve": {"type": "array", "maxItems": 256, "items": {
          "type": "object", "additionalProperties": false,
          "required": ["limit_watts", "draw_watts", "slowdown"],
          "properties": {
            "limit_watts": {"type": "number"}, "draw_watts": {"type": "number"},
            "slowdown": {"type": "number", "exclusiveMinimum": 0},
            "sigma": {"type": "number", "minimum": 0, "default": 0}}}}}}}}},
"Grant": {
  "type": "object", "required": ["number", "valid_seconds", "next_report_seconds", "caps"],
  "properties": {
    "number": {"type": "integer"}, "valid_seconds": {"type": "number"},
    "next_report_seconds": {"type": "number"},
    "caps": {"type": "array", "items": {
      "type": "object", "required": ["device", "cap_watts", "fallback_watts"],
      "properties": {
        "device": {"type": "string"}, "cap_watts": {"type": "number"},
        "fallback_watts": {"type": "number"}}}}}}
})json";

// Bodies in the dialect of the Python implementation's batch size optimizer.
constexpr const char* kReference = R"json({
"ReferenceError": {"type": "object", "required": ["detail"],
                   "properties": {"detail": {"type": ["string", "array"]}}},
"ReferenceJobId": {"type": "object", "required": ["job_id"],
                   "properties": {"job_id": {"type": "string"}}},
"ReferenceJobSpec": {
  "type": "object",
  "required": ["job_id_prefix", "batch_sizes", "default_batch_size", "max_power",
               "number_of_gpus", "gpu_model"],
  "properties": {
    "job_id": {"type": ["string", "null"]}, "job_id_prefix": {"type": "string"},
    "batch_sizes": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    "default_batch_size": {"type": "integer"}, "eta_knob": {"type": "number"},
    "beta_knob": {"type": ["number", "null"]}, "target_metric": {"type": "number"},
    "higher_is_better_metric": {"type": "boolean"}, "max_epochs": {"type": "integer"},
    "num_pruning_rounds": {"type": "integer"}, "window_size": {"type": "integer"},
    "mab_prior_mean": {"type": "number"}, "mab_prior_precision": {"type": "number"},
    "mab_num_explorations": {"type": "integer"}, "mab_seed": {"type": ["integer", "null"]},
    "max_power": {"type": "number"}, "number_of_gpus": {"type": "integer"},
    "gpu_model": {"type": "string"}}},
"ReferenceTrialId": {
  "type": "object", "required": ["job_id", "batch_size", "trial_number"],
  "properties": {"job_id": {"type": "string"}, "batch_size": {"type": "integer"},
                 "trial_number": {"type": "integer"}}},
"ReferenceTrainingResult": {
  "type": "object",
  "required": ["job_id", "batch_size", "trial_number", "time", "energy", "metric",
               "current_epoch"],
  "properties": {"job_id": {"type": "string"}, "batch_size": {"type": "integer"},
                 "trial_number": {"type": "integer"}, "time": {"type": "number", "minimum": 0},
                 "energy": {"type": "number", "minimum": 0}, "metric": {"type": "number"},
                 "current_epoch": {"type": "integer", "minimum": 1}}},
"ReferenceReportResponse": {
  "type": "object", "required": ["stop_train", "converged", "message"],
  "properties": {"stop_train": {"type": "boolean"}, "converged": {"type": "boolean"},
                 "message": {"type": "string"}}}
})json";

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

// Bodies in the dialect of the Python implementation's pipeline optimizer.
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

Json OpenApiPlanSchemas() {
  Json schemas = Json::parse(kPlanSchemas);
  schemas.update(Json::parse(kReferencePipelines));
  return schemas;
}

Json OpenApiSchemas() {
  Json schemas = Json::parse(kRequestSchemas);
  schemas.update(Json::parse(kAnswers));
  schemas.update(Json::parse(kOverviews));
  schemas.update(Json::parse(kBudget));
  schemas.update(Json::parse(kReference));
  schemas.update(OpenApiPlanSchemas());
  return schemas;
}

}  // namespace

Json OpenApiDocument(const std::vector<http::Route>& routes, std::string_view version) {
  return http::OpenApiDocument(routes, {.title = "Zeus job server",
                                        .version = std::string(version),
                                        .schemas = OpenApiSchemas(),
                                        .meaning = Meaning});
}

}  // namespace zeus::server
