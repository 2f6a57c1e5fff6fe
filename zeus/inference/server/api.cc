#include "zeus/inference/server/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/http/pushed_response.h"
#include "zeus/http/url.h"
#include "zeus/inference/server/ollama_dialect.h"
#include "zeus/metrics/metric.h"

namespace zeus::inference {
namespace {

using http::Access;
using http::Answer;
using http::JsonAnswer;
using http::Request;

constexpr std::size_t kLongestName = 128;
constexpr Seconds kTextTimeout{300};

// Parsing a larger body would hold up the thread of the sockets.
constexpr std::size_t kLargestImmediateBody = 256 * 1024;

int StatusFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

Answer ErrorAnswer(int status, std::string_view message) {
  return JsonAnswer(status, ErrorJson(status, message));
}

// The error in the dialect of the request's path.
Answer ErrorAnswer(const Request& request, int status, std::string_view message) {
  if (request.target.starts_with("/api/")) return JsonAnswer(status, OllamaError(message));
  return ErrorAnswer(status, message);
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
}

Json TruthJson(const std::string& name, const sim::RequestTruth& truth) {
  const auto seconds = [](Seconds time) { return time.count(); };
  return {{"request", name},
          {"energy_joules", truth.energy().value()},
          {"prefill_joules", truth.prefill.value()},
          {"decode_joules", truth.decode.value()},
          {"prompt_tokens", truth.prompt_tokens},
          {"cached_tokens", truth.cached_tokens},
          {"output_tokens", truth.output_tokens},
          {"preemptions", truth.preemptions},
          {"outcome", truth.outcome == sim::RequestOutcome::kFinished ? "finished" : "cancelled"},
          {"arrival_seconds", seconds(truth.arrival)},
          {"first_token_seconds", truth.first_token ? Json(seconds(*truth.first_token)) : Json()},
          {"end_seconds", seconds(truth.end)}};
}

}  // namespace

Result<std::unique_ptr<InferenceApi>> InferenceApi::Create(const Options& options,
                                                           ServedEngine& engine,
                                                           const Clock& clock) {
  if (!options.text_from.empty()) ZEUS_RETURN_IF_ERROR(http::ParseUrl(options.text_from));
  return std::unique_ptr<InferenceApi>(new InferenceApi(options, engine, clock));
}

InferenceApi::InferenceApi(const Options& options, ServedEngine& engine, const Clock& clock)
    : options_(options),
      engine_(engine),
      created_(
          std::chrono::floor<std::chrono::seconds>(clock.WallNow()).time_since_epoch().count()) {
  AddRoutes();
}

void InferenceApi::AddRoutes() {
  const auto add = [this](std::string_view method, std::string_view pattern, auto handler) {
    router_.Add(
        {.method = method, .pattern = pattern, .access = Access::kOpen, .handler = handler});
  };
  const auto complete = [this](Endpoint endpoint) {
    return [this, endpoint](const Request& request) { return Complete(endpoint, request); };
  };
  add("POST", "/v1/chat/completions", complete(Endpoint::kChat));
  add("POST", "/v1/completions", complete(Endpoint::kText));
  add("POST", "/v1/embeddings", complete(Endpoint::kEmbeddings));
  add("POST", "/api/chat", complete(Endpoint::kOllamaChat));
  add("POST", "/api/generate", complete(Endpoint::kOllamaGenerate));
  add("GET", "/v1/models", [this](const Request&) { return ListModels(); });
  add("GET", "/api/tags", [this](const Request&) -> Result<Answer> {
    return JsonAnswer(200, OllamaTags(options_.model_name, created_));
  });
  add("GET", "/metrics", [this](const Request&) -> Result<Answer> {
    return Answer{.body = engine_.MetricsText(), .content_type = MetricSet::kContentType};
  });
  const auto health = [this](const Request&) -> Result<Answer> {
    ZEUS_RETURN_IF_ERROR(engine_.status());
    return JsonAnswer(200, {{"status", "ok"}});
  };
  add("GET", "/healthz", health);
  add("GET", "/health", health);  // As vLLM calls it.
  if (options_.truth == Truth::kHidden) return;
  add("GET", "/zeus/truth/{id}",
      [this](const Request& request) { return ShowTruth(request.parameters.front()); });
  add("GET", "/zeus/truth", [this](const Request&) { return ShowAccounts(); });
}

http::Work InferenceApi::Classify(const Request& request) const {
  if (request.method != "POST") return http::Work::kImmediate;
  if (!options_.text_from.empty()) return http::Work::kSlow;
  return request.body.size() > kLargestImmediateBody ? http::Work::kRead : http::Work::kImmediate;
}

http::Admission InferenceApi::Admit(const Request& header) {
  return {.large_body = header.method == "POST", .vital = header.target == "/healthz"};
}

Answer InferenceApi::Handle(Request& request) {
  auto target = http::ParseTarget(request.target);
  if (!target.ok()) return ErrorAnswer(400, target.error().message);
  const http::RouteMatch match = router_.Find(request.method, target.value().segments);
  if (match.route == nullptr)
    return ErrorAnswer(
        request, match.allowed.empty() ? 404 : 405,
        fmt::format("{} {} is not known here", request.method, Printable(request.target)));
  request.parameters = match.parameters;
  auto answer = match.route->handler(request);
  if (answer.ok()) return std::move(answer).value();
  return ErrorAnswer(request, StatusFor(answer.error().code), answer.error().message);
}

Answer InferenceApi::Refusal(int status, const std::string& why) {
  return ErrorAnswer(status, why);
}

void InferenceApi::Finished(const http::FinishedRequest& /*request*/) {}

Result<Answer> InferenceApi::Complete(Endpoint endpoint, const Request& request) {
  ZEUS_TRY(CompletionRequest completion, ParseCompletionRequest(endpoint, request.body));
  if (!completion.model.empty() && completion.model != options_.model_name)
    return Error{ErrorCode::kNotFound, fmt::format("the model {} does not exist here: use {}",
                                                   Quote(completion.model), options_.model_name)};
  IncomingRequest incoming{.serial = engine_.NextSerial()};
  incoming.name = IsPlainName(request.zeus_request) ? request.zeus_request
                                                    : fmt::format("sim-{}", incoming.serial);
  if (!options_.text_from.empty() && endpoint != Endpoint::kEmbeddings) {
    ZEUS_TRY(incoming.text, AskForText(endpoint, request));
  }
  incoming.completion = std::move(completion);
  incoming.response = std::make_shared<http::PushedResponse>(
      [this, serial = incoming.serial] { engine_.Cancel(serial); });
  Answer answer{.pushed = incoming.response};
  engine_.Submit(std::move(incoming));
  return answer;
}

// The words of another server's answer. It is asked before the engine gets the request, because the
// length of the answer must be known then.
Result<std::string> InferenceApi::AskForText(Endpoint endpoint, const Request& request) {
  ZEUS_TRY(Json body, ParseJson(request.body));
  if (IsOllama(endpoint)) {
    ZEUS_TRY(body, OllamaToOpenAi(endpoint, body));
  }
  body["stream"] = false;
  body.erase("stream_options");
  body.erase("model");
  body["n"] = 1;
  const bool chat = endpoint == Endpoint::kChat || endpoint == Endpoint::kOllamaChat;
  ZEUS_TRY(const auto client,
           http::Client::Create({.url = options_.text_from, .answer_timeout = kTextTimeout}));
  auto reply = client->Send({.method = http::Method::kPost,
                             .path = chat ? "/v1/chat/completions" : "/v1/completions",
                             .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)});
  if (!reply.ok())
    return Error{ErrorCode::kUnavailable, "the server of words: " + reply.error().message};
  if (reply.value().status != 200)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the server of words answered with status {}", reply.value().status)};
  ZEUS_TRY(const Json response, ParseJson(reply.value().body));
  std::string text = AnswerText(response);
  if (text.empty())
    return Error{ErrorCode::kUnavailable, "the server of words answered without a text"};
  return text;
}

Result<Answer> InferenceApi::ListModels() const {
  return JsonAnswer(200, {{"object", "list"},
                          {"data",
                           {{{"id", options_.model_name},
                             {"object", "model"},
                             {"created", created_},
                             {"owned_by", "zeus"}}}}});
}

Result<Answer> InferenceApi::ShowTruth(const std::string& name) {
  ZEUS_TRY(const sim::RequestTruth truth, engine_.FindTruth(name));
  return JsonAnswer(200, TruthJson(name, truth));
}

Result<Answer> InferenceApi::ShowAccounts() {
  ZEUS_TRY(const sim::InferenceEngine::Accounts accounts, engine_.ReadAccounts());
  return JsonAnswer(200, {{"prefill_joules", accounts.prefill.value()},
                          {"decode_joules", accounts.decode.value()},
                          {"unfinished_joules", accounts.unfinished.value()},
                          {"idle_joules", accounts.idle.value()},
                          {"total_joules", accounts.total().value()}});
}

}  // namespace zeus::inference
