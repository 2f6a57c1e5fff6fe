#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/http/client_certificate.h"

// Requests and answers as a server's handlers see them, without the library that moves them over
// sockets.
namespace zeus::http {

// A handler's knowledge of the other end of a connection: who it is, say. Handlers derive their own
// from it. Immutable after RequestHandler::Connected() has returned it.
class ConnectionPeer {
 public:
  virtual ~ConnectionPeer() = default;
};

// A connection that was accepted a moment ago.
struct AcceptedConnection {
  enum class Transport { kUnixSocket, kTcp };

  Transport transport = Transport::kTcp;
  int descriptor = -1;   // The socket, which stays the server's.
  std::string remote{};  // Address and port of the client; "unix".
};

// A handler's decision about a connection.
struct Reception {
  std::shared_ptr<const ConnectionPeer> peer{};  // Null: there is nothing to know about it.
  // Not empty: the first request is answered with 503 and this sentence, and the connection ends.
  std::string refusal{};
  // The key by which connections and logins are counted: "uid:1001". Empty: the address of a TCP
  // client; connections over Unix sockets are then not counted one by one.
  std::string counting_key{};
};

struct Request {
  std::string method{};  // "GET"
  std::string target{};  // As the client sent it: "/v1/jobs?limit=5".
  std::string body{};
  std::string authorization{};
  std::string accept{};
  std::string accept_encoding{};
  std::string if_none_match{};
  std::string last_event_id{};
  std::string zeus_request{};  // X-Zeus-Request: the name that a gateway gave the request.
  std::string zeus_hold{};     // Zeus-Hold: how long a change is meant to last.
  std::string host{};
  std::string origin{};      // The page on whose behalf a browser sends the request.
  std::string fetch_site{};  // Sec-Fetch-Site: how that page is related to this server.
  std::optional<std::string> wanted_name_space{};  // The header Zeus-Namespace.
  std::string remote{};                            // Address and port of the client, for the log.
  // The key by which connections are counted; empty for a Unix socket whose handler gives none.
  std::string address{};
  std::string id{};  // Names the request in log and answer: the client's choice, or ours.
  std::optional<ClientCertificate> certificate{};  // By which the client has shown who it is.
  // The result of RequestHandler::Connected() for the connection; null where that was null.
  std::shared_ptr<const ConnectionPeer> peer{};

  // The following are known once the handler has found the route and checked the token.
  std::string user{};                          // The name of the token.
  std::string name_space{};                    // The name space in which the request acts.
  bool may_change = false;                     // Whether the caller may use routes that change.
  std::vector<std::string> parameters{};       // In the order of the route's pattern.
  std::map<std::string, std::string> query{};  // Decoded.
};

// A source of server-sent events. Used by one thread at a time.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // The thing whose changes the stream shows; see Answer::changed_topic.
  virtual const std::string& topic() const = 0;
  // Returns the text of the events since the last call, empty when there are none. An error ends
  // the stream.
  virtual Result<std::string> Next() = 0;
};

struct Answer;
class PushedResponse;

// An answer that is not available yet. Used by one thread at a time.
class AwaitedAnswer {
 public:
  virtual ~AwaitedAnswer() = default;
  // The thing whose change may complete the answer; see Answer::changed_topic.
  virtual const std::string& topic() const = 0;
  // Returns the answer, or nullopt when it is still not available.
  virtual std::optional<Answer> Next() = 0;
  // After this time the server sends TimeoutAnswer() instead, which must not block.
  virtual Seconds timeout() const = 0;
  virtual Answer TimeoutAnswer() = 0;
};

struct Answer {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers{};
  std::shared_ptr<EventSource> events{};  // Instead of a body: a stream without an end.
  // Instead of everything else: the server polls it, and no thread waits meanwhile.
  std::shared_ptr<AwaitedAnswer> awaited{};
  // Instead of everything else: another thread completes it (pushed_response.h).
  std::shared_ptr<PushedResponse> pushed{};
  std::string changed_topic{};  // Streams and awaited answers on this topic are polled at once.
  std::string route{};          // The route's pattern, for metrics: one of a bounded set.
};

// How an error looks on the wire: as we write it, or as the framework of the Python implementation
// does, for that implementation's clients.
enum class Dialect { kOurs, kReference };

// An answer with a JSON body. Text that is not UTF-8 is repaired.
Answer JsonAnswer(int status, const Json& json);

// An error that the server itself raises, with a status for which the library has no ErrorCode.
Answer RefusalAnswer(int status, std::string_view code, const std::string& message,
                     Dialect dialect = Dialect::kOurs);

enum class Connection { kKeepAlive, kClose };
// It is omitted from the answer to HEAD. One that comes in pieces is sent in chunks, or ends with
// the connection where the client is too old for chunks.
enum class Body { kSent, kOmitted, kChunked, kUntilClose };

// The bytes of an answer. A stream's answer has no length: it ends with the connection. One whose
// body comes in pieces has none of its body yet.
std::string ResponseText(const Answer& answer, std::string_view request_id, Connection connection,
                         Body body);

// A request whose answer was sent, or whose client left before that.
struct FinishedRequest {
  std::string id{};
  std::string remote{};
  std::string method{};
  std::string target{};
  std::string route{};
  std::string user{};
  int status = 0;
  std::size_t bytes = 0;  // Size of the answer's body.
  Seconds duration{};
};

// The kind of work that an answer takes, which decides about the threads that do it.
enum class Work {
  kImmediate,  // Takes microseconds and blocks on nothing: done on the thread of the sockets.
  kRead,       // Reads a database.
  kWrite,      // Changes a database.
  kSlow,       // May compute for seconds or minutes.
};

// A handler's decision about a request of which only the header has arrived.
struct Admission {
  std::optional<Answer> refusal{};  // Sent instead of reading the body.
  bool large_body = false;          // The body may have up to Limits::large_body bytes.
  bool vital = false;               // The request is answered even when all connections are taken.
};

// Answers the requests that a server receives. Thread-safe.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  // Called once for every connection, on the thread of the sockets right after accept. Must not
  // block.
  virtual Reception Connected(const AcceptedConnection&) { return {}; }
  // Called exactly once for every peer that Connected() returned, when its connection has ended and
  // no Handle() of it runs any more: within milliseconds after the client has left, also while a
  // stream or an awaited answer is open, and at the end of the server. Comes from the thread of the
  // sockets, from a worker that needed longer than the connection lived, or from the thread that
  // destroys the server. Must not block.
  virtual void Disconnected(const ConnectionPeer&) {}

  // Must not block.
  virtual Work Classify(const Request& request) const = 0;
  // Decides by the header whether the body is read. Must not block.
  virtual Admission Admit(const Request& header) = 0;
  // Called on a worker thread, or on the thread of the sockets for Work::kImmediate.
  virtual Answer Handle(Request& request) = 0;
  // Returns the answer to input that never became a request: too large, too slow, not HTTP.
  virtual Answer Refusal(int status, const std::string& why) = 0;
  // Called on the thread of the sockets. Must not block.
  virtual void Finished(const FinishedRequest& request) = 0;
};

}  // namespace zeus::http
