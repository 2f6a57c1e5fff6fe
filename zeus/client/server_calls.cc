#include "zeus/client/server_calls.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/error.h"
#include "zeus/wire/requests.h"

namespace zeus {
namespace {

constexpr int kFirstSuccess = 200;
constexpr int kNoContent = 204;
constexpr int kFirstRedirection = 300;
constexpr int kFirstError = 400;
constexpr int kUnauthorized = 401;
constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;

std::string BodyText(ServerCalls::Method method, const Json& body) {
  const bool has_body = method == ServerCalls::Method::kPost || method == ServerCalls::Method::kPut;
  return has_body ? JsonText(body) : "";
}

// A `zeus serve` explains in JSON what it has not found.
bool IsOfAnotherServer(const http::Reply& answer) {
  if (answer.status != kNotFound && answer.status != kMethodNotAllowed) return false;
  const auto body = wire::ParseBody(answer.body);
  return !body.ok() || !body.value().contains("error");
}

}  // namespace

Result<std::unique_ptr<ServerCalls>> ServerCalls::Create(const CallOptions& options, Clock& clock) {
  ZEUS_TRY(const http::Url url, http::ParseUrl(options.url));
  // A path is most likely a mistake: the routes of `zeus serve` begin at the root.
  if (url.scheme != http::Url::Scheme::kUnix && !url.path.empty())
    return InvalidArgument(Quote(options.url) + " must not have a path: use " + url.server());
  ZEUS_TRY(std::unique_ptr<http::Client> client,
           http::Client::Create({.url = options.url,
                                 .token = options.token,
                                 .authorities = options.authorities,
                                 .keep_connection = options.keep_connection,
                                 .connect_timeout = options.retry.connect_timeout,
                                 .answer_timeout = options.retry.answer_timeout}));
  return std::unique_ptr<ServerCalls>(new ServerCalls(std::move(client), options, clock));
}

ServerCalls::ServerCalls(std::unique_ptr<http::Client> client, const CallOptions& options,
                         Clock& clock)
    : client_(std::move(client)), url_(options.url), retry_(options.retry), clock_(clock) {}

Error ServerCalls::NoZeusServer(std::string_view why) const {
  return {ErrorCode::kInternal, fmt::format("{} is no zeus server: {}", url_, why)};
}

// Returns answers that stand for an error as this error.
Result<http::Reply> ServerCalls::Send(Method method, const std::string& path,
                                      const std::string& body) {
  ZEUS_TRY(http::Reply answer, client_->Send({.method = method, .path = path, .body = body}));
  if (answer.status < kFirstError || IsOfAnotherServer(answer)) return answer;
  Error error = wire::ErrorFromAnswer(answer.status, answer.body);
  if (answer.status == kUnauthorized)
    error.message += " (--token-file or ZEUS_TOKEN; token= in Python)";
  return error;
}

// An answer that no `zeus serve` gives is not asked for again: it would be the same.
Result<ServerCalls::Reply> ServerCalls::Parse(const http::Reply& answer) const {
  if (answer.status < kFirstSuccess || answer.status >= kFirstRedirection)
    return NoZeusServer(fmt::format("it answers with status {}", answer.status));
  Reply reply{.status = answer.status};
  if (answer.status == kNoContent || answer.body.empty()) return reply;
  // The client has bounded the size of the answer.
  ZEUS_TRY(reply.body,
           Understood(wire::ParseBody(answer.body, std::numeric_limits<std::size_t>::max())));
  return reply;
}

Result<ServerCalls::Reply> ServerCalls::AskOnce(Method method, const std::string& path,
                                                const Json& body) {
  ZEUS_TRY(const http::Reply answer, Send(method, path, BodyText(method, body)));
  return Parse(answer);
}

Result<ServerCalls::Reply> ServerCalls::Ask(Method method, const std::string& path,
                                            const Json& body) {
  const std::string text = BodyText(method, body);
  BackOff pauses(retry_);
  const int cancellations = cancellations_;
  for (int attempt = 1;; ++attempt) {
    const auto answer = Send(method, path, text);
    if (answer.ok()) return Parse(answer.value());
    // An earlier attempt deleted it, and its answer was lost.
    if (method == Method::kDelete && attempt > 1 && answer.error().code == ErrorCode::kNotFound)
      return Reply{.status = kNoContent};
    if (!answer.error().retryable() || attempt >= retry_.attempts) return answer.error();
    if (cancellations_ != cancellations) return answer.error();
    clock_.SleepFor(pauses.NextPause());
  }
}

void ServerCalls::Cancel() {
  ++cancellations_;
  client_->Interrupt();
}

}  // namespace zeus
