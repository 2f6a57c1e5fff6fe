#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

// Requests and answers without the library that moves them over sockets.
namespace zeus::server {

struct HttpRequest {
  std::string method{};  // "GET"
  std::string target{};  // As it was sent: "/v1/jobs?limit=5".
  std::string body{};
  std::string authorization{};
  std::string accept{};
  std::string last_event_id{};
  std::string host{};
  std::string origin{};                            // The page's, when a browser sends it for one,
  std::string fetch_site{};                        // and how that is related to us.
  std::optional<std::string> wanted_name_space{};  // Zeus-Namespace.
  std::string remote{};                            // The sender, for the log.
  std::string address{};     // The same, as connections are counted; empty for a Unix socket.
  std::string id{};          // For the log and the answer: the client's own, or made up.
  std::string user{};        // The name of its token, once that was recognised.
  std::string name_space{};  // In which it acts, likewise.

  // What the router made of the target.
  std::vector<std::string> parameters{};
  std::map<std::string, std::string> query{};
};

// A stream of server-sent events. Used by one thread at a time.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // Whose changes it waits for.
  virtual const std::string& job_id() const = 0;
  // What happened since the last call, as text to send; empty when nothing did. An error ends the
  // stream.
  virtual Result<std::string> Next() = 0;
};

struct HttpAnswer;

// An answer that is not there yet. Used by one thread at a time.
class AwaitedAnswer {
 public:
  virtual ~AwaitedAnswer() = default;
  // Whose changes it waits for.
  virtual const std::string& job_id() const = 0;
  // nullopt: not yet.
  virtual std::optional<HttpAnswer> Next() = 0;
  // Instead of an answer, when it has taken this long. Must not wait.
  virtual Seconds patience() const = 0;
  virtual HttpAnswer TooLate() = 0;
};

struct HttpAnswer {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers{};
  std::shared_ptr<EventSource> events{};  // Instead of a body: a stream without an end.
  // Instead of everything else: looked at now and then, while no thread waits for it.
  std::shared_ptr<AwaitedAnswer> awaited{};
  std::string changed_job{};  // Who waits for this job has something new to look at.
  std::string route{};        // For metrics: a bounded set.
};

// A request whose answer was sent, or whose client left before.
struct FinishedRequest {
  std::string id{};
  std::string remote{};
  std::string method{};
  std::string target{};
  std::string route{};
  std::string user{};
  int status = 0;
  std::size_t bytes = 0;  // Of the answer's body.
  Seconds duration{};
};

// What answering a request waits for.
enum class WaitsFor { kNothing, kReading, kWriting, kPlanning };

// The decision about a request whose body has not arrived.
struct Admission {
  std::optional<HttpAnswer> refusal{};  // Instead of reading the body.
  bool large_body = false;              // It may be of up to HttpLimits::large_body.
  bool vital = false;                   // Answered even when all connections are taken.
};

// What stands behind the sockets. Thread-safe.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  // Must not wait itself.
  virtual WaitsFor Weigh(const HttpRequest& request) const = 0;
  // Whether the body of a request is to be read, when only its header is there. Must not wait
  // either.
  virtual Admission Admit(const HttpRequest& header) = 0;
  // Called on a worker if it waits for something, else on the thread of the sockets.
  virtual HttpAnswer Handle(HttpRequest& request) = 0;
  // The answer to what never became a request: too large, too slow, not HTTP.
  virtual HttpAnswer Refusal(int status, const std::string& why) = 0;
  // Called on the thread of the sockets: must not wait.
  virtual void Finished(const FinishedRequest& request) = 0;
};

}  // namespace zeus::server
