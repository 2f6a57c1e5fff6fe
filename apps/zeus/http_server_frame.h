#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/zeus/http_server_options.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/http/access_control.h"
#include "zeus/http/access_log.h"
#include "zeus/http/server.h"
#include "zeus/http/tokens.h"
#include "zeus/process/signal_watch.h"

// The parts of a verb that serves HTTP which do not depend on what it serves.
namespace zeus::cli {

http::ServerOptions HttpOptions(const HttpServerOptions& options);
// Returns null when there are no tokens: every caller may do everything then. Refuses servers that
// other machines reach without tokens or TLS, unless that is asked for.
Result<std::unique_ptr<http::TokenFile>> LoadTokens(const HttpServerOptions& options);
// The names by which a server that only this machine reaches may be called.
http::OriginGuard::Options OriginOptions(const HttpServerOptions& options);
// --database, or the user's own file.
Result<std::string> DatabaseUrl(const HttpServerOptions& options);

class LastResort;

// The objects that live to the very end, in the order of their construction: the last resort guards
// everything that is constructed after it.
struct HttpServerFrame {
  HttpServerFrame();
  ~HttpServerFrame();
  HttpServerFrame(const HttpServerFrame&) = delete;
  HttpServerFrame& operator=(const HttpServerFrame&) = delete;

  // Tokens and log. Called before the database is opened.
  Status Open(const HttpServerOptions& options, const Clock& clock);
  // Signals end the program in an orderly way from now on. Called once the database is open: one
  // that hangs must not keep a signal from ending us.
  Status WatchSignals(const Clock& clock);

  std::unique_ptr<http::TokenFile> tokens{};
  std::unique_ptr<http::AccessLog> log{};
  std::unique_ptr<SignalWatch> signals{};
  std::unique_ptr<LastResort> last_resort;
};

struct ServingHooks {
  Seconds period{5};                 // How often must_end() is asked, and secrets are refreshed.
  std::function<bool()> must_end{};  // Null: signals alone end the server.
  std::function<void()> before_shutdown{};  // Null: nothing is to be stopped.
};

// Prints the address, and serves until a signal. Returns the exit code, unless the last resort ends
// the process first.
Result<int> ServeUntilSignal(http::Server& server, HttpServerFrame& frame, const Clock& clock,
                             const HttpServerOptions& options, const ServingHooks& hooks);

// Runs a server's main function; a system without threads is an error for people.
Result<int> RunServer(const std::function<Result<int>()>& serve);

// Makes a token and prints it.
Result<int> MakeToken(const HttpServerOptions& options);

}  // namespace zeus::cli
