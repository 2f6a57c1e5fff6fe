#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/http/limits.h"
#include "zeus/http/message.h"
#include "zeus/http/socket_file.h"
#include "zeus/http/tls.h"

namespace zeus::http {

struct ServerOptions {
  std::string listen = "127.0.0.1:8000";  // See ParseListenAddress().
  SocketPermissions permissions{};        // The file of a Unix socket gets these.
  // A listening socket that exists already (socket activation), used instead of `listen`. It stays
  // the caller's and open: the server uses a duplicate, and removes no file at its end.
  std::optional<int> listening_descriptor{};
  std::optional<TlsFiles> tls{};  // TLS 1.2 and later; nullopt: plain HTTP.
  Limits limits{};
};

// Returns whether only this machine can reach a server that listens on this address. An address
// that nobody can listen on counts as local.
bool IsLocal(const std::string& listen);

// Figures that a server updates while it runs, for metrics.
struct ConnectionCounts {
  std::atomic<std::size_t> open = 0;
  std::atomic<std::size_t> streams = 0;    // Open connections that follow events.
  std::atomic<std::uint64_t> refused = 0;  // Connections beyond the limits, since the start.
};

// Serves HTTP/1.1 over TCP, TLS or a Unix socket. One thread moves bytes; handlers run on worker
// threads. Without connections it does not wake up. Several servers may share a handler, but each
// needs counts of its own. The handler, the counts and the clock must outlive the server.
class Server {
 public:
  // The server listens when this returns. Returns kInvalidArgument for malformed addresses and
  // unusable certificates, and kUnavailable when the address is taken or the system has no threads.
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                               RequestHandler& handler, ConnectionCounts& counts,
                                               const Clock& clock);
  ~Server();  // Ends at once: running requests get no answer.
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& url() const;  // "http://127.0.0.1:8000"

  // Reads certificate and key again if their files have changed, and returns whether they had. New
  // connections use them. When they cannot be used, returns an error and keeps those of before. One
  // thread.
  Result<bool> RefreshTls();

  // Stops listening, ends streams and closes idle connections. Requests that have begun to arrive
  // are answered.
  void BeginShutdown();
  // Returns true as soon as the last connection is gone, and false after `timeout`.
  bool WaitForShutdown(Seconds timeout);

 private:
  class State;
  explicit Server(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace zeus::http
