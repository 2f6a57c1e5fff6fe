#pragma once

#include <memory>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

struct HttpResponse {
  int status;
  std::string body;
  std::optional<Seconds> retry_after;
};

// GET from one server, never for long: finding the address, connecting and every read have a limit
// each, answers are small, redirects are not followed (a token must not travel on). TLS with the
// system's certificates; without TLS only to this machine. One thread at a time calls Get().
class HttpClient {
 public:
  // "https://api.example.org", "http://127.0.0.1:8080"
  static Result<std::unique_ptr<HttpClient>> Create(const std::string& base_url, Seconds timeout);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any answer of the server is a response, whatever its status; kUnavailable when none came.
  struct Header {
    std::string name;
    std::string value;
  };
  Result<HttpResponse> Get(const std::string& path, const Header& header);

  // From another thread: lets a running Get() fail soon, and every later one.
  void Cancel();

 private:
  class Connection;
  explicit HttpClient(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace zeus
