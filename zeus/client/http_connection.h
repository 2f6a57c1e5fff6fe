#pragma once

#include <memory>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// Requests with JSON bodies to one server, over TCP, TLS or a Unix socket. One connection for each,
// or one that is kept and made again when it breaks. Thread-safe; one request at a time.
class HttpConnection {
 public:
  struct Options {
    std::string url{};  // http://host:8000, https://host, unix:///run/zeus/serve.sock
    std::string token{};
    std::string authorities{};  // File with certificates to trust; empty: the system's.
    bool keep = false;          // The connection, between requests.
    Seconds connect_timeout{5};
    Seconds answer_timeout{30};
  };

  // kInvalidArgument for an address that is none; also for authorities that cannot be used.
  static Result<std::unique_ptr<HttpConnection>> Create(const Options& options);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  enum class Method { kGet, kPost, kDelete };
  struct Answer {
    int status = 0;
    std::string body{};
  };
  // Any answer of the server, whatever its status; kUnavailable when none came.
  Result<Answer> Ask(Method method, const std::string& path, const std::string& body);
  // Makes the request of another thread that waits for its answer end soon, without one. A
  // connection that is being made is waited for.
  void Cancel();

 private:
  class Client;
  explicit HttpConnection(std::unique_ptr<Client> client);
  std::unique_ptr<Client> client_;
};

// For one segment of a path, or a value of a query.
std::string PercentEncoded(const std::string& text);

}  // namespace zeus
