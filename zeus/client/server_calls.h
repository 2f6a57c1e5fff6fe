#pragma once

#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/client/http_connection.h"

namespace zeus {

// How patient a client is with its server.
struct CallOptions {
  std::string url{};    // See HttpConnection::Options.
  std::string token{};  // Sent as bearer; empty: none.
  std::string authorities{};
  int attempts = 4;    // Of each call, the first included.
  Seconds pause{0.1};  // Before the second; doubles.
  Seconds answer_timeout{30};
  // Stays open between calls. A thousand trainings that report now and then would hold as many
  // connections; a few callers that ask all the time should keep theirs.
  bool keep_connection = false;
};

// Calls of a `zeus serve`, JSON in both directions. A call that gets no answer, or is told to come
// again, is repeated a few times: the caller sees to it that this is safe. Thread-safe.
class ServerCalls {
 public:
  using Method = HttpConnection::Method;

  struct Reply {
    int status = 0;
    Json body{};
  };

  // Does not connect yet. The clock must outlive it.
  static Result<std::unique_ptr<ServerCalls>> Create(const CallOptions& options, Clock& clock);

  // The error that the server's answer stands for, when it is one. A DELETE that finds nothing
  // after an attempt without an answer has done its work.
  Result<Reply> Ask(Method method, const std::string& path, const Json& body = {});
  // For what must not be repeated.
  Result<Reply> AskOnce(Method method, const std::string& path, const Json& body = {});

 private:
  ServerCalls(std::unique_ptr<HttpConnection> connection, const CallOptions& options, Clock& clock);

  Result<Reply> Send(Method method, const std::string& path, const std::string& body);

  std::unique_ptr<HttpConnection> connection_;
  const int attempts_;
  const Seconds pause_;
  Clock& clock_;
};

}  // namespace zeus
