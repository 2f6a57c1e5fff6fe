#include "zeus/client/server_calls.h"

#include <limits>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/body.h"
#include "zeus/wire/error.h"

namespace zeus {
namespace {

constexpr int kNoContent = 204;
constexpr int kUnauthorized = 401;

std::string BodyText(ServerCalls::Method method, const Json& body) {
  return method == ServerCalls::Method::kPost ? wire::Text(body) : "";
}

}  // namespace

Result<std::unique_ptr<ServerCalls>> ServerCalls::Create(const CallOptions& options, Clock& clock) {
  ZEUS_TRY(std::unique_ptr<HttpConnection> connection,
           HttpConnection::Create({.url = options.url,
                                   .token = options.token,
                                   .authorities = options.authorities,
                                   .keep = options.keep_connection,
                                   .connect_timeout = options.retry.connect_timeout,
                                   .answer_timeout = options.retry.answer_timeout}));
  return std::unique_ptr<ServerCalls>(new ServerCalls(std::move(connection), options, clock));
}

ServerCalls::ServerCalls(std::unique_ptr<HttpConnection> connection, const CallOptions& options,
                         Clock& clock)
    : connection_(std::move(connection)), retry_(options.retry), clock_(clock) {}

Result<ServerCalls::Reply> ServerCalls::Send(Method method, const std::string& path,
                                             const std::string& body) {
  ZEUS_TRY(const HttpConnection::Answer answer, connection_->Ask(method, path, body));
  constexpr int kFirstRedirection = 300;
  if (answer.status >= kFirstRedirection || answer.status < 200) {
    Error error = wire::ErrorFromAnswer(answer.status, answer.body);
    if (answer.status == kUnauthorized)
      error.message += " (--token-file or ZEUS_TOKEN; token= in Python)";
    return error;
  }
  Reply reply{.status = answer.status};
  if (answer.status == kNoContent || answer.body.empty()) return reply;
  // Answers have no largest size: plans are long.
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
    // An earlier attempt, whose answer was lost, has deleted it.
    if (method == Method::kDelete && attempt > 1 && reply.error().code == ErrorCode::kNotFound)
      return Reply{.status = kNoContent};
    if (!reply.error().retryable() || attempt >= retry_.attempts) return reply;
    if (cancellations_ != cancellations) return reply;
    clock_.SleepFor(pauses.NextPause());
  }
}

void ServerCalls::Cancel() {
  ++cancellations_;
  connection_->Cancel();
}

}  // namespace zeus
