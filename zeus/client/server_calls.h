#pragma once

#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/http/client.h"
#include "zeus/http/url.h"

namespace zeus {

// How often a client repeats a call, and how long it waits for each answer.
struct CallOptions {
  std::string url{};          // See http::ParseUrl(); without a path.
  std::string token{};        // Sent as a bearer token; empty: none is sent.
  std::string authorities{};  // See http::ClientOptions.
  int attempts = 4;           // Attempts of each call, the first included.
  Seconds pause{0.1};         // Before the second attempt; doubles with each further one.
  Seconds answer_timeout{30};
  // Stays open between calls. A thousand trainings that report now and then would hold as many
  // connections; a few callers that ask all the time should keep theirs.
  bool keep_connection = false;
};

// Calls of a `zeus serve`, JSON in both directions. A call that gets no answer, or is told to come
// again, is repeated a few times: the caller sees to it that this is safe. Thread-safe.
class ServerCalls {
 public:
  using Method = http::Method;

  struct Reply {
    int status = 0;
    Json body{};
  };

  // Does not connect yet. The clock must outlive the calls.
  static Result<std::unique_ptr<ServerCalls>> Create(const CallOptions& options, Clock& clock);

  // Returns the error that the server's answer stands for, when it is one. A DELETE whose earlier
  // attempt got no answer succeeds when the server then finds nothing to delete.
  Result<Reply> Ask(Method method, const std::string& path, const Json& body = {});
  // As Ask(), but with one attempt, for calls that must not be repeated.
  Result<Reply> AskOnce(Method method, const std::string& path, const Json& body = {});

 private:
  ServerCalls(std::unique_ptr<http::Client> client, const CallOptions& options, Clock& clock);

  Result<Reply> Send(Method method, const std::string& path, const std::string& body);

  std::unique_ptr<http::Client> client_;
  const int attempts_;
  const Seconds pause_;
  Clock& clock_;
};

}  // namespace zeus
