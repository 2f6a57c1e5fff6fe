#include "zeus/colosseum/api/colosseum_openapi.h"

#include <string>

#include "zeus/base/json.h"
#include "zeus/http/openapi_document.h"

namespace zeus::colosseum {
namespace {

std::string_view DuelStatusMeaning(int status) {
  switch (status) {
    case 200:
      return "Done";
    case 201:
      return "The duel has begun";
    case 401:
      return "The token is missing or wrong";
    case 403:
      return "The token may not do this, or a foreign page asked for it";
    case 404:
      return "There is no such duel";
    case 409:
      return "Another vote was cast, or this one is not open";
    case 410:
      return "The duel has failed or expired";
    case 422:
      return "The request makes no sense; the error names the field";
    case 429:
      return "Too many duels are fought at once, or too many wrong tokens came from this address";
    default:
      return "Try again later";
  }
}

constexpr const char* kDuelSchemas = R"json({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {
  "type": "object", "required": ["code", "message"], "properties": {
    "code": {"type": "string"}, "message": {"type": "string"}, "field": {"type": ["string", "null"]}}}}},
"ReferenceError": {"type": "object", "required": ["detail"], "properties": {"detail": {"type": "string"}}},
"Health": {"type": "object", "properties": {"status": {"type": "string"}}},
"OpenApi": {"type": "object"},
"Models": {"type": "object", "required": ["models"], "properties": {
  "models": {"type": "array", "items": {"type": "string"}}}},
"Challenge": {"type": "object", "required": ["prompt"], "properties": {
  "prompt": {"type": "string", "minLength": 1},
  "prefer": {"type": ["string", "null"], "description": "a model that must fight; two random ones otherwise"}}},
"Vote": {"type": "object", "required": ["choice"], "properties": {"choice": {"enum": ["a", "b", "tie"]}}},
"Worth": {"type": "object", "required": ["worth"], "properties": {"worth": {"type": "boolean"}}},
"AnswerEnergy": {"type": "object", "required": ["energy_joules", "final"], "properties": {
  "energy_joules": {"type": ["number", "null"]}, "sigma_joules": {"type": ["number", "null"]},
  "prefill_joules": {"type": ["number", "null"]}, "prefill_sigma_joules": {"type": ["number", "null"]},
  "decode_joules": {"type": ["number", "null"]}, "decode_sigma_joules": {"type": ["number", "null"]},
  "final": {"type": "boolean"}}},
"Identity": {"type": "object", "required": ["model"], "properties": {
  "model": {"type": "string"}, "prompt_tokens": {"type": ["number", "null"]},
  "output_tokens": {"type": ["number", "null"]}, "duration_seconds": {"type": ["number", "null"]},
  "joules_per_output_token": {"type": "number"}, "absent_reason": {"type": "string"},
  "text": {"type": "string"}}},
"Duel": {"type": "object", "required": ["id", "created_at", "stage", "votes"], "properties": {
  "id": {"type": "string"}, "created_at": {"type": "string"}, "expires_at": {"type": "string"},
  "stage": {"enum": ["answering", "voting", "weighing", "revealed", "failed", "expired"]},
  "votes": {"type": "object", "properties": {
    "response": {"enum": ["a", "b", "tie"]}, "worth": {"enum": ["yes", "no"]},
    "change": {"enum": ["a", "b", "tie"]}}},
  "energy": {"type": "object", "properties": {
    "a": {"$ref": "#/components/schemas/AnswerEnergy"}, "b": {"$ref": "#/components/schemas/AnswerEnergy"}}},
  "power_watts": {"type": "object", "description": "by side, pairs of seconds and watts"},
  "comparison": {"type": "object", "required": ["verdict"], "properties": {
    "verdict": {"enum": ["unknown", "cannot_tell", "a_more", "b_more"]},
    "difference_joules": {"type": ["number", "null"]}, "sigma_joules": {"type": ["number", "null"]},
    "ratio": {"type": ["number", "null"]}}},
  "answers": {"type": "object", "properties": {
    "a": {"$ref": "#/components/schemas/Identity"}, "b": {"$ref": "#/components/schemas/Identity"}}},
  "preference": {"type": "string"}, "change_until": {"type": "string"}, "prompt": {"type": "string"}}},
"Duels": {"type": "object", "required": ["duels", "next"], "properties": {
  "duels": {"type": "array", "items": {"type": "object",
    "description": "a Duel without its id and texts"}},
  "next": {"type": ["string", "null"]}}},
"Estimate": {"type": ["object", "null"], "properties": {
  "value": {"type": ["number", "null"]}, "low": {"type": ["number", "null"]},
  "high": {"type": ["number", "null"]}, "cases": {"type": "number"}, "count": {"type": "integer"}}},
"Leaderboard": {"type": "object", "required": ["models", "duels", "confidence"], "properties": {
  "duels": {"type": "number"}, "confidence": {"type": "number"},
  "models": {"type": "array", "items": {"type": "object", "required": ["model", "games", "rating"],
    "properties": {
      "model": {"type": "string"}, "games": {"type": "integer"}, "wins": {"type": "integer"},
      "ties": {"type": "integer"}, "win_rate": {"$ref": "#/components/schemas/Estimate"},
      "rating": {"$ref": "#/components/schemas/Estimate"},
      "response_joules": {"$ref": "#/components/schemas/Estimate"},
      "token_joules": {"$ref": "#/components/schemas/Estimate"},
      "turned": {"$ref": "#/components/schemas/Estimate"}, "frontier": {"type": "boolean"}}}}}},
"ReferenceModels": {"type": "object", "required": ["available_models"], "properties": {
  "available_models": {"type": "array", "items": {"type": "string"}}}},
"ReferencePrompt": {"type": "object", "required": ["request_id", "prompt", "model_index"], "properties": {
  "request_id": {"type": "string", "minLength": 8}, "prompt": {"type": "string", "minLength": 1},
  "model_index": {"enum": [0, 1]}, "model_preference": {"type": ["string", "null"]}}},
"ReferenceResponseVote": {"type": "object", "required": ["request_id", "victory_index"], "properties": {
  "request_id": {"type": "string"}, "victory_index": {"enum": [0, 1]}}},
"ReferenceEnergyVote": {"type": "object", "required": ["request_id", "is_worth"], "properties": {
  "request_id": {"type": "string"}, "is_worth": {"type": "boolean"}}},
"ReferenceEnergies": {"type": "object", "required": ["model_names", "energy_consumptions"], "properties": {
  "model_names": {"type": "array", "items": {"type": "string"}},
  "energy_consumptions": {"type": "array", "items": {"type": ["number", "null"]}}}},
"ReferenceNames": {"type": "object", "required": ["model_names"], "properties": {
  "model_names": {"type": "array", "items": {"type": "string"}}}}
})json";

}  // namespace

Json OpenApiDocument(const std::vector<http::Route>& routes, std::string_view version) {
  return http::OpenApiDocument(routes, {.title = "Zeus Colosseum",
                                        .version = std::string(version),
                                        .schemas = Json::parse(kDuelSchemas),
                                        .meaning = DuelStatusMeaning});
}

}  // namespace zeus::colosseum
