#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::http {

enum class Method { kGet, kPost, kPut, kDelete };

// One request of a client.
struct Call {
  Method method = Method::kGet;
  std::string path{};  // With its query; follows the path of the client's URL.
  std::string body{};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers{};
};

// A server's answer, whatever its status.
struct Reply {
  int status = 0;
  std::string body{};
  std::optional<Seconds> retry_after{};  // The Retry-After header, when it is a number of seconds.
};

struct ClientOptions {
  std::string url{};             // See ParseUrl(). Its path stands before the path of every call.
  std::string token{};           // Sent as "Authorization: Bearer …"; empty: no such header.
  std::string authorities{};     // PEM file of the certificates to trust; empty: the system's.
  bool keep_connection = false;  // Between calls; one that breaks is made again.
  // Limits the name look-up, and then the attempt at each address that the look-up found.
  Seconds connect_timeout{5};
  // Limits each read and each write. The body of a reply must be complete within four times this,
  // so that a server that drips bytes cannot hold a caller for ever.
  Seconds answer_timeout{30};
  std::size_t largest_body = 64 << 20;  // Bytes of a reply.
};

// Calls one server over TCP, TLS or a Unix socket. No call takes much longer than its timeouts: a
// name server that does not answer is given up, too. Redirects are not followed, since a token must
// not travel to another server. Thread-safe; calls of several threads run one after the other.
class Client {
 public:
  // Does not connect yet. Returns kInvalidArgument for a malformed URL and for a file of
  // authorities that holds no certificate.
  static Result<std::unique_ptr<Client>> Create(const ClientOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Returns kUnavailable, with the reason and where possible the remedy, when no answer came.
  Result<Reply> Send(const Call& call);

  // As Send(), for a body that arrives over a longer time: `piece` gets its bytes as they come, on
  // this thread, and ends the call by returning false. The reply has no body then, unless its
  // status is none of success. The answer timeout limits the time between two pieces, and nothing
  // limits the whole.
  using Piece = std::function<bool(std::string_view bytes)>;
  Result<Reply> Stream(const Call& call, const Piece& piece);

  // Makes a running Send() of another thread fail soon, except while it connects. Later ones are
  // not affected.
  void Interrupt();
  // Makes a running Send() of another thread fail soon, and every later one at once.
  void Cancel();

 private:
  class Connection;
  explicit Client(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace zeus::http
