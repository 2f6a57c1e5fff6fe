#pragma once

#include <memory>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// Sends requests with JSON bodies to one server, over TCP, TLS or a Unix socket. Each request has a
// connection of its own, or all use one that is kept and made again when it breaks. Thread-safe;
// one request at a time.
class HttpConnection {
 public:
  struct Options {
    std::string url{};  // http://host:8000, https://host, unix:///run/zeus/serve.sock
    std::string token{};
    std::string authorities{};  // A file of certificates to trust; empty for those of the system.
    bool keep = false;          // Whether the connection stays open between requests.
    Seconds connect_timeout{5};
    Seconds answer_timeout{30};
  };

  // Returns kInvalidArgument for a malformed address, and for authorities that cannot be used.
  static Result<std::unique_ptr<HttpConnection>> Create(const Options& options);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  enum class Method { kGet, kPost, kDelete };
  struct Answer {
    int status = 0;
    std::string body{};
  };
  // Returns the answer of the server, whatever its status; kUnavailable when there is none.
  Result<Answer> Ask(Method method, const std::string& path, const std::string& body);
  // Makes the request of another thread that waits for its answer end soon, without one. A
  // connection that is being made is waited for.
  void Cancel();

 private:
  class Client;
  explicit HttpConnection(std::unique_ptr<Client> client);
  std::unique_ptr<Client> client_;
};

// Encodes one segment of a path, or a value of a query.
std::string PercentEncoded(const std::string& text);

}  // namespace zeus
