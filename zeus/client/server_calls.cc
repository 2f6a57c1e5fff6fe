#include "zeus/client/server_calls.h"

#include <limits>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/error.h"
#include "zeus/wire/requests.h"

namespace zeus {
namespace {

constexpr int kNoContent = 204;
constexpr int kUnauthorized = 401;

std::string BodyText(ServerCalls::Method method, const Json& body) {
  return method == ServerCalls::Method::kPost ? JsonText(body) : "";
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
    : client_(std::move(client)), retry_(options.retry), clock_(clock) {}

Result<ServerCalls::Reply> ServerCalls::Send(Method method, const std::string& path,
                                             const std::string& body) {
  ZEUS_TRY(const http::Reply answer, client_->Send({.method = method, .path = path, .body = body}));
  constexpr int kFirstRedirection = 300;
  if (answer.status >= kFirstRedirection || answer.status < 200) {
    Error error = wire::ErrorFromAnswer(answer.status, answer.body);
    if (answer.status == kUnauthorized)
      error.message += " (--token-file or ZEUS_TOKEN; token= in Python)";
    return error;
  }
  Reply reply{.status = answer.status};
  if (answer.status == kNoContent || answer.body.empty()) return reply;
  // The client has bounded the size of the answer.
  auto parsed = wire::ParseBody(answer.body, std::numeric_limits<std::size_t>::max());
  if (!parsed.ok())
    return Error{ErrorCode::kInternal,
                 "the server's answer is not understood: " + parsed.error().message};
  reply.body = std::move(parsed).value();
  return reply;
}

Result<ServerCalls::Reply> ServerCalls::AskOnce(Method method, const std::string& path,
                                                const Json& body) {
  return Send(method, path, BodyText(method, body));
}

Result<ServerCalls::Reply> ServerCalls::Ask(Method method, const std::string& path,
                                            const Json& body) {
  const std::string text = BodyText(method, body);
  BackOff pauses(retry_);
  const int cancellations = cancellations_;
  for (int attempt = 1;; ++attempt) {
    auto reply = Send(method, path, text);
    if (reply.ok()) return reply;
    // An earlier attempt deleted it, and its answer was lost.
    if (method == Method::kDelete && attempt > 1 && reply.error().code == ErrorCode::kNotFound)
      return Reply{.status = kNoContent};
    if (!reply.error().retryable() || attempt >= retry_.attempts) return reply;
    if (cancellations_ != cancellations) return reply;
    clock_.SleepFor(pauses.NextPause());
  }
}

void ServerCalls::Cancel() {
  ++cancellations_;
  client_->Interrupt();
}

}  // namespace zeus
