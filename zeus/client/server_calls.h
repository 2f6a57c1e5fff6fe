#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/client/retry_policy.h"
#include "zeus/http/client.h"
#include "zeus/http/url.h"

namespace zeus {

// Where a server is, and how it is called.
struct CallOptions {
  std::string url{};          // See http::ParseUrl(); without a path.
  std::string token{};        // Sent as a bearer token, unless empty.
  std::string authorities{};  // See http::ClientOptions.
  RetryPolicy retry = kRetryUsually;
  // Whether the connection stays open between calls. A thousand trainings that report now and then
  // would hold as many connections; a few callers that ask all the time should keep theirs.
  bool keep_connection = false;
};

// Calls of a `zeus serve`, with JSON in both directions. A call that gets no answer, or an answer
// to come again later, is repeated as the retry policy says: the caller makes sure that this is
// safe. Thread-safe; one call at a time.
class ServerCalls {
 public:
  using Method = http::Method;

  struct Reply {
    int status = 0;
    Json body{};
  };

  // Does not connect yet. The clock must outlive the calls.
  static Result<std::unique_ptr<ServerCalls>> Create(const CallOptions& options, Clock& clock);

  // An answer that stands for an error is returned as this error. A DELETE that finds nothing after
  // an attempt without an answer has succeeded.
  Result<Reply> Ask(Method method, const std::string& path, const Json& body = {});
  // For calls that must not be repeated.
  Result<Reply> AskOnce(Method method, const std::string& path, const Json& body = {});
  // Returns what an answer means. One without a meaning comes from something else than a
  // `zeus serve`: the error names the server and is kUnavailable.
  template <typename T>
  Result<T> Understood(Result<T> meaning) const {
    if (meaning.ok()) return meaning;
    return NoZeusServer(meaning.error().message);
  }
  // See JobService::CancelCalls().
  void Cancel();

 private:
  ServerCalls(std::unique_ptr<http::Client> client, const CallOptions& options, Clock& clock);

  Result<http::Reply> Send(Method method, const std::string& path, const std::string& body);
  Result<Reply> Parse(const http::Reply& answer) const;
  // "http://host:8000 is no zeus server: …"
  Error NoZeusServer(std::string_view why) const;

  std::unique_ptr<http::Client> client_;
  const std::string url_;
  const RetryPolicy retry_;
  Clock& clock_;
  std::atomic<int> cancellations_ = 0;
};

}  // namespace zeus
