#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/colosseum/api/duel_routes.h"

// The routes of the reference's backend. Its clients name a duel themselves, ask once for each
// side, and get JSON strings that end with a zero byte.
namespace zeus::colosseum {
namespace {

using http::Access;
using http::Answer;
using http::Dialect;
using http::JsonAnswer;
using http::Request;

constexpr std::string_view kIdPrefix = "ref:";  // Keeps their ids apart from ours.
constexpr std::string_view kRandomModels = "two random models";
constexpr std::string_view kOneIs = "one is ";
constexpr std::size_t kShortestId = 8;  // Shorter ones are easy to guess.

Answer Detail(const Refusal& refusal) { return RefusalOf(refusal, Dialect::kReference); }

Result<std::string> DuelIdFrom(const Json& body) {
  ZEUS_TRY(const std::string id, GetField<std::string>(body, "request_id"));
  ZEUS_RETURN_IF_ERROR(CheckIdentifier("request_id", id));
  if (id.size() < kShortestId)
    return InvalidArgument(
        fmt::format("request_id: must have at least {} characters: {}", kShortestId, Quote(id)));
  return std::string(kIdPrefix) + id;
}

// The number of a side. 0.5 is no number of one.
Result<std::size_t> IndexFrom(const Json& body, const char* name) {
  ZEUS_TRY(const auto index, GetField<double>(body, name));
  if (index == 0 || index == 1) return static_cast<std::size_t>(index);
  return InvalidArgument(fmt::format("{}: must be 0 or 1", name));
}

// The model of "One is X" or "X"; empty for two random ones.
Result<std::string> PreferenceFrom(const Json& body) {
  ZEUS_TRY(const auto given, GetOptionalField<std::string>(body, "model_preference"));
  const std::string text(Trim(given.value_or("")));
  const std::string lower = LowerCase(text);
  if (lower == kRandomModels) return std::string();
  if (lower.starts_with(kOneIs)) return std::string(Trim(text.substr(kOneIs.size())));
  return text;
}

Result<Answer> AnswerPrompt(Arena& arena, const Request& request) {
  ZEUS_TRY(const Json body, BodyOf(request));
  Challenge challenge{.caller = request.address};
  ZEUS_TRY(challenge.id, DuelIdFrom(body));
  ZEUS_TRY(challenge.prompt, GetField<std::string>(body, "prompt"));
  ZEUS_TRY(challenge.preference, PreferenceFrom(body));
  ZEUS_TRY(const std::size_t side, IndexFrom(body, "model_index"));
  const auto begun = arena.BeginOrJoin(challenge);
  if (const auto* refusal = std::get_if<Refusal>(&begun)) return Detail(*refusal);
  return StreamOf(arena, challenge.id, {},
                  {.content_type = "application/octet-stream",
                   .format =
                       [side](const Follower::News& news) {
                         if (news.text[side].empty()) return std::string();
                         return JsonText(Json(news.text[side])) + '\0';
                       },
                   .failure = FailureEnd::kCut},
                  Dialect::kReference);
}

Json NamesOf(const Duel& duel) { return {duel.at(Side::kA).model, duel.at(Side::kB).model}; }

// While it is asked whether the energy was worth it, the names are those of the sides: the client
// shows them after its second call only, but the answer itself must not tell.
Result<Answer> AnswerResponseVote(Arena& arena, const Request& request) {
  ZEUS_TRY(const Json body, BodyOf(request));
  ZEUS_TRY(const std::string id, DuelIdFrom(body));
  ZEUS_TRY(const std::size_t index, IndexFrom(body, "victory_index"));
  const auto voted = arena.Cast(id, Ballot::kResponse, For(index == 0 ? Side::kA : Side::kB));
  if (const auto* refusal = std::get_if<Refusal>(&voted)) return Detail(*refusal);
  const Duel& duel = std::get<Duel>(voted);
  Json energies = Json::array();
  for (const Side side : kSides) {
    const auto& energy = duel.at(side).energy;
    energies.push_back(energy ? FiniteOrNull(energy->energy.value()) : Json());
  }
  const bool revealed = std::holds_alternative<Revealed>(duel.stage);
  return JsonAnswer(200, {{"model_names", revealed ? NamesOf(duel) : Json{"Model A", "Model B"}},
                          {"energy_consumptions", std::move(energies)}});
}

Result<Answer> AnswerEnergyVote(Arena& arena, const Request& request) {
  ZEUS_TRY(const Json body, BodyOf(request));
  ZEUS_TRY(const std::string id, DuelIdFrom(body));
  ZEUS_TRY(const bool worth, GetField<bool>(body, "is_worth"));
  const auto voted = arena.Cast(id, Ballot::kWorth, worth ? Choice::kYes : Choice::kNo);
  if (const auto* refusal = std::get_if<Refusal>(&voted)) return Detail(*refusal);
  return JsonAnswer(200, {{"model_names", NamesOf(std::get<Duel>(voted))}});
}

}  // namespace

void AddReferenceRoutes(Arena& arena, http::Router& router) {
  router.Add({.method = "GET",
              .pattern = "/models",
              .dialect = Dialect::kReference,
              .handler = [&arena](const Request&) -> Result<Answer> {
                const auto models = arena.Models();
                if (const auto* refusal = std::get_if<Refusal>(&models)) return Detail(*refusal);
                return JsonAnswer(200, {{"available_models", std::get<0>(models)}});
              },
              .summary = "Reference: the models",
              .answer_schema = "ReferenceModels",
              .statuses = {200, 503}});
  router.Add({.method = "POST",
              .pattern = "/prompt",
              .access = Access::kWrite,
              .dialect = Dialect::kReference,
              .handler = [&arena](const Request& r) { return AnswerPrompt(arena, r); },
              .summary = "Reference: one side's answer, as JSON strings that end with a zero byte",
              .request_schema = "ReferencePrompt",
              .statuses = {200, 409, 422, 429, 503}});
  router.Add({.method = "POST",
              .pattern = "/response_vote",
              .access = Access::kWrite,
              .dialect = Dialect::kReference,
              .handler = [&arena](const Request& r) { return AnswerResponseVote(arena, r); },
              .summary = "Reference: vote for an answer",
              .request_schema = "ReferenceResponseVote",
              .answer_schema = "ReferenceEnergies",
              .statuses = {200, 404, 409, 410, 422}});
  router.Add({.method = "POST",
              .pattern = "/energy_vote",
              .access = Access::kWrite,
              .dialect = Dialect::kReference,
              .handler = [&arena](const Request& r) { return AnswerEnergyVote(arena, r); },
              .summary = "Reference: whether the answer was worth its extra energy",
              .request_schema = "ReferenceEnergyVote",
              .answer_schema = "ReferenceNames",
              .statuses = {200, 404, 409, 410, 422}});
  router.Add({.method = "GET",
              .pattern = "/health",
              .access = Access::kOpen,
              .dialect = Dialect::kReference,
              .handler = [](const Request&) -> Result<Answer> {
                return JsonAnswer(200, {{"status", "ok"}});
              },
              .summary = "Reference: whether the server runs",
              .answer_schema = "Health",
              .statuses = {200},
              .immediate = true,
              .vital = true});
}

}  // namespace zeus::colosseum
