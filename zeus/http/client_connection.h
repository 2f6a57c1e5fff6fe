#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/http/client.h"
#include "zeus/http/url.h"

namespace zeus::http {

// The part of a Client that speaks HTTP and TLS. Its functions promise what those of Client do, but
// they may throw.
class ClientConnection {
 public:
  ClientConnection() = default;
  virtual ~ClientConnection() = default;
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  // An empty `piece` collects the body.
  virtual Result<Reply> Send(const Call& call, const Client::Piece& piece) = 0;
  virtual void Interrupt() = 0;
  virtual void Cancel() = 0;
};

// Returns the addresses of a host. Gives up after `timeout`, or once cancelled() returns true.
using Resolver = std::function<Result<std::vector<std::string>>(
    const std::string& host, Seconds timeout, const std::function<bool()>& cancelled)>;

struct ConnectionPlan {
  Url url;
  ClientOptions options;
  Resolver resolve;
};

// Makes the connection of a client; does not connect yet.
//
// httplib_connection.cc defines it with cpp-httplib, which brings OpenSSL and Brotli: to load these
// takes as long as the rest of a short command. So the zeus command has a definition of its own
// (apps/zeus/http_module.cc), which loads a module with the other one at the first call. The linker
// takes httplib_connection.cc from libzeus_http.a only where a program does not define the
// function.
Result<std::unique_ptr<ClientConnection>> MakeConnection(ConnectionPlan plan);

}  // namespace zeus::http
