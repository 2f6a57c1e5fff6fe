#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/server/http_message.h"
#include "zeus/server/server_metrics.h"

namespace zeus::server {

// What one client may take from the others.
struct HttpLimits {
  std::size_t body = std::size_t{1} << 20;         // Bytes; more is answered with 413.
  std::size_t large_body = std::size_t{16} << 20;  // Where profiles of pipelines are sent.
  std::size_t header = 16 * 1024;                  // Bytes; more is answered with 431.
  std::size_t fields = 100;                        // Fields of a header, likewise.
  // Bytes of all bodies that arrive or are worked on; more are answered with 503. What is made of a
  // body takes several times as much memory.
  std::size_t bodies = std::size_t{32} << 20;
  std::size_t answers = std::size_t{64} << 20;  // Bytes of all answers that are being sent.
  std::size_t connections = 1024;               // More are answered with 503 and closed.
  std::size_t per_address = 512;                // Connections, likewise.
  // Threads, at most; each kind begins with one.
  int workers = 64;                   // Changes that are worked on at the same time.
  int readers = 8;                    // Reads, likewise: few threads wake less often.
  int planners = 16;                  // Requests that may have to wait for a frontier.
  Seconds header_time = Seconds(10);  // From the first byte to the last; then 408.
  Seconds body_time = Seconds(30);
  Seconds idle_time = Seconds(75);     // Between requests of a connection; then it is closed.
  Seconds request_time = Seconds(60);  // For the answer; then 503.
  Seconds write_time = Seconds(30);    // For the client to take it.
};

struct TlsFiles {
  std::filesystem::path certificate{};  // PEM, with the chain.
  std::filesystem::path key{};          // PEM.
};

struct HttpServerOptions {
  std::string listen = "127.0.0.1:8000";  // "host:port", "[::1]:port", "unix:/path".
  std::optional<TlsFiles> tls{};          // TLS 1.2 and later.
  HttpLimits limits{};
};

// Whether only this machine can reach an address of HttpServerOptions::listen.
bool IsLocal(const std::string& listen);

// HTTP/1.1 over TCP or a Unix socket. One thread moves bytes, workers answer. What it is given must
// outlive it.
class HttpServer {
 public:
  // Listens when it returns. kInvalidArgument for addresses and files that make no sense,
  // kUnavailable when the address is taken or there are no threads to be had.
  static Result<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                   RequestHandler& handler, ServerMetrics& metrics,
                                                   const Clock& clock);
  ~HttpServer();  // At once: requests that are worked on are not answered.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const std::string& url() const;  // "http://127.0.0.1:8000"

  // Reads certificate and key again if their files have changed: connections that are made from now
  // on use them. Whether they had changed. What cannot be used is an error, and those of before
  // stay. From one thread.
  Result<bool> RefreshTls();

  // Accepts nothing more, ends streams and closes what is idle; requests that have begun to arrive
  // are answered.
  void BeginShutdown();
  // True as soon as the last connection is gone; false when that takes longer.
  bool WaitForShutdown(Seconds patience);

 private:
  class State;
  explicit HttpServer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace zeus::server
