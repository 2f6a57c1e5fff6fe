#include "zeus/colosseum/api/duel_routes.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/colosseum/api/colosseum_json.h"
#include "zeus/http/pushed_response.h"

namespace zeus::colosseum {
namespace {

using http::Access;
using http::Answer;
using http::Dialect;
using http::JsonAnswer;
using http::Request;

constexpr int kMostListed = 1000;

// Where a client's copy of the texts ends: the id of the last event that it got. A malformed one is
// that of another stream, so the texts come from the beginning.
Follower::Position PositionFrom(const std::string& event_id) {
  const std::size_t dash = event_id.find('-');
  if (dash == std::string::npos) return {};
  const auto a = ParseUnsigned(std::string_view(event_id).substr(0, dash));
  const auto b = ParseUnsigned(std::string_view(event_id).substr(dash + 1));
  if (!a.ok() || !b.ok()) return {};
  return {static_cast<std::size_t>(a.value()), static_cast<std::size_t>(b.value())};
}

// An event has both texts, so that its length does not tell which side has got how much.
std::string EventText(const Follower::News& news) {
  if (news.text[0].empty() && news.text[1].empty() && news.stage.empty()) return ": \n\n";
  Json data = {{"a", news.text[0]}, {"b", news.text[1]}};
  if (!news.stage.empty()) data["stage"] = news.stage;
  return fmt::format("id: {}-{}\ndata: {}\n\n", news.position[0], news.position[1], JsonText(data));
}

// The answer to an outcome that is a value or a refusal.
template <class T, class Make>
Answer AnswerTo(const Outcome<T>& outcome, const Make& make) {
  if (const auto* refusal = std::get_if<Refusal>(&outcome))
    return RefusalOf(*refusal, Dialect::kOurs);
  return make(std::get<T>(outcome));
}

Answer AnswerWithDuel(const Outcome<Duel>& outcome, int status = 200) {
  return AnswerTo(outcome, [&](const Duel& duel) { return JsonAnswer(status, VisibleJson(duel)); });
}

Result<Answer> CreateDuel(Arena& arena, const Request& request) {
  ZEUS_TRY(const Json body, BodyOf(request));
  Challenge challenge{.caller = request.address};
  ZEUS_TRY(challenge.prompt, GetField<std::string>(body, "prompt"));
  ZEUS_TRY(const auto preference, GetOptionalField<std::string>(body, "prefer"));
  challenge.preference = preference.value_or("");
  const auto begun = arena.Begin(challenge);
  if (const auto* refusal = std::get_if<Refusal>(&begun))
    return RefusalOf(*refusal, Dialect::kOurs);
  return AnswerWithDuel(arena.Find(std::get<std::string>(begun)), 201);
}

Result<Answer> CastBallot(Arena& arena, Ballot ballot, const Request& request) {
  ZEUS_TRY(const Json body, BodyOf(request));
  Choice choice = Choice::kNo;
  if (ballot == Ballot::kWorth) {
    ZEUS_TRY(const bool worth, GetField<bool>(body, "worth"));
    choice = worth ? Choice::kYes : Choice::kNo;
  } else {
    ZEUS_TRY(const std::string text, GetField<std::string>(body, "choice"));
    const auto found = FindChoice(text);
    if (!found || !Suits(ballot, *found))
      return InvalidArgument(fmt::format("choice: must be a, b or tie: {}", Quote(text)));
    choice = *found;
  }
  return AnswerWithDuel(arena.Cast(request.parameters.front(), ballot, choice));
}

Result<Answer> ListDuels(Arena& arena, const Request& request) {
  DuelQuery query;
  if (const auto before = request.query.find("before"); before != request.query.end()) {
    const auto time = ParseWallTime(before->second);
    if (!time.ok()) return time.error().While("before");
    query.before = time.value();
  }
  if (const auto limit = request.query.find("limit"); limit != request.query.end()) {
    const auto number = ParseInteger(limit->second);
    if (!number.ok() || number.value() < 1 || number.value() > kMostListed)
      return InvalidArgument(fmt::format("limit: must be a number from 1 to {}", kMostListed));
    query.limit = static_cast<int>(number.value());
  }
  return AnswerTo(arena.List(query), [&](const std::vector<Duel>& duels) {
    Json list = Json::array();
    for (const Duel& duel : duels) list.push_back(PublicJson(duel));
    const bool full = duels.size() == static_cast<std::size_t>(query.limit);
    return JsonAnswer(200, {{"duels", std::move(list)},
                            {"next", full ? Json(ToExactText(duels.back().created_at)) : Json()}});
  });
}

}  // namespace

Answer RefusalOf(const Refusal& refusal, Dialect dialect) {
  using Kind = Refusal::Kind;
  struct Form {
    int status;
    const char* code;
  };
  const Form form = [&]() -> Form {
    switch (refusal.kind) {
      case Kind::kInvalid:
        return {422, "invalid_argument"};
      case Kind::kUnknown:
        return {404, "not_found"};
      case Kind::kConflict:
        return {409, "conflict"};
      case Kind::kGone:
        return {410, "gone"};
      case Kind::kOverloaded:
        return {429, "overloaded"};
      case Kind::kUnavailable:
        break;
    }
    return {503, "unavailable"};
  }();
  Answer answer = http::RefusalAnswer(form.status, form.code, refusal.message, dialect);
  if (form.status == 429) answer.headers.emplace_back("Retry-After", "5");
  if (form.status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

Result<Json> BodyOf(const Request& request) {
  ZEUS_TRY(Json body, ParseJson(request.body));
  if (!body.is_object()) return InvalidArgument("the body must be a JSON object");
  return body;
}

Answer StreamOf(Arena& arena, const std::string& id, Follower::Position from, StreamShape shape,
                Dialect dialect) {
  // The response pulls from the follower, which wakes the response: one of them must not own the
  // other.
  struct Link {
    std::shared_ptr<Follower> follower{};
    std::weak_ptr<http::PushedResponse> response{};
  };
  const auto link = std::make_shared<Link>();
  const std::string content_type(shape.content_type);
  using Bytes = http::PushedResponse::SharedBytes;
  const auto pull = [link, shape = std::move(shape)]() -> Bytes {
    const Follower::News news = link->follower->Pull();
    std::string bytes = shape.format(news);
    if (!news.stage.empty()) {
      link->follower->Leave();
      if (const auto response = link->response.lock()) {
        if (news.stage == "failed" && shape.failure == FailureEnd::kCut)
          response->Abort();
        else
          response->End();
      }
    }
    return bytes.empty() ? Bytes() : std::make_shared<const std::string>(std::move(bytes));
  };
  const auto response =
      std::make_shared<http::PushedResponse>([link] { link->follower->Leave(); }, pull);
  link->response = response;
  const auto followed = arena.Follow(id, from, [weak = std::weak_ptr(response)] {
    if (const auto waiting = weak.lock()) waiting->Offer();
  });
  if (const auto* refusal = std::get_if<Refusal>(&followed)) return RefusalOf(*refusal, dialect);
  link->follower = std::get<std::shared_ptr<Follower>>(followed);
  response->Start({.content_type = content_type});
  return {.pushed = response};
}

namespace {

void AddBallotRoutes(Arena& arena, http::Router& router) {
  struct BallotRoute {
    std::string_view pattern;
    Ballot ballot;
    std::string_view summary;
    std::string_view schema;
  };
  for (const BallotRoute& route :
       {BallotRoute{"/zeus/duels/{id}/vote", Ballot::kResponse, "Vote for an answer", "Vote"},
        BallotRoute{"/zeus/duels/{id}/worth", Ballot::kWorth,
                    "Say whether the answer was worth its extra energy", "Worth"},
        BallotRoute{"/zeus/duels/{id}/change", Ballot::kChange,
                    "Vote again after the reveal, beside the first vote", "Vote"}})
    router.Add({.method = "POST",
                .pattern = route.pattern,
                .access = Access::kWrite,
                .handler = [&arena, ballot = route.ballot](
                               const Request& r) { return CastBallot(arena, ballot, r); },
                .summary = route.summary,
                .request_schema = route.schema,
                .answer_schema = "Duel",
                .statuses = {200, 404, 409, 410, 422, 503}});
}

}  // namespace

void AddDuelRoutes(Arena& arena, http::Router& router) {
  router.Add({.method = "GET",
              .pattern = "/zeus/models",
              .handler = [&arena](const Request&) -> Result<Answer> {
                return AnswerTo(arena.Models(), [](const std::vector<std::string>& models) {
                  return JsonAnswer(200, {{"models", models}});
                });
              },
              .summary = "The models that a duel may be asked for",
              .answer_schema = "Models",
              .statuses = {200, 503}});
  router.Add({.method = "POST",
              .pattern = "/zeus/duels",
              .access = Access::kWrite,
              .handler = [&arena](const Request& r) { return CreateDuel(arena, r); },
              .summary = "Begin a duel",
              .request_schema = "Challenge",
              .answer_schema = "Duel",
              .statuses = {201, 422, 429, 503}});
  router.Add({.method = "GET",
              .pattern = "/zeus/duels",
              .handler = [&arena](const Request& r) { return ListDuels(arena, r); },
              .summary = "Revealed duels, the latest first",
              .answer_schema = "Duels",
              .statuses = {200, 422},
              .query = {"before", "limit"}});
  router.Add({.method = "GET",
              .pattern = "/zeus/duels/{id}",
              .handler = [&arena](const Request& r) -> Result<Answer> {
                return AnswerWithDuel(arena.Find(r.parameters.front()));
              },
              .summary = "A duel, as far as its votes have revealed it",
              .answer_schema = "Duel",
              .statuses = {200, 404}});
  router.Add({.method = "GET",
              .pattern = "/zeus/duels/{id}/events",
              .handler = [&arena](const Request& r) -> Result<Answer> {
                if (r.method == "HEAD") return Answer{.content_type = "text/event-stream"};
                return StreamOf(arena, r.parameters.front(), PositionFrom(r.last_event_id),
                                {.content_type = "text/event-stream", .format = EventText},
                                Dialect::kOurs);
              },
              .summary = "Both answers as server-sent events; goes on after Last-Event-ID",
              .statuses = {200, 404, 410}});
  AddBallotRoutes(arena, router);
  router.Add({.method = "GET",
              .pattern = "/zeus/leaderboard",
              .handler = [&arena](const Request&) -> Result<Answer> {
                return AnswerTo(arena.Leaderboard(), [](const std::vector<Standing>& board) {
                  return JsonAnswer(200, ToJson(board));
                });
              },
              .summary = "Ratings and energy of the models",
              .answer_schema = "Leaderboard",
              .statuses = {200, 503}});
}

}  // namespace zeus::colosseum
