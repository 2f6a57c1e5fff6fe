#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/http/access_control.h"
#include "zeus/http/message.h"

namespace zeus::web {

// Whether requests of the page need a token.
enum class TokenUse { kNone, kOptional, kRequired };

struct ApplicationOptions {
  std::string program{};                // "zeusd"; the page shows it.
  std::string version{};                // Version() of the program.
  std::vector<std::string> features{};  // The views that this server fills: "node", "jobs", …
  TokenUse token = TokenUse::kNone;
  http::OriginGuard::Options origins{};  // Host names under which the page is served.
};

// The web application (web/) for a server's http::RequestHandler: the page at /, its script and
// style sheet, and /app.json, which tells the page what this server has. All are the same for every
// caller and hold no data, so they need no token. Where the build had no node, a plain page says
// so. Immutable, thread-safe, never blocks.
class Application {
 public:
  explicit Application(ApplicationOptions options);

  // Whether the request asks for one of these, so that Answer() is the answer.
  static bool Has(const http::Request& request);
  http::Answer Answer(const http::Request& request) const;

 private:
  http::Answer FileAnswer(std::string_view name, const http::Request& request) const;

  const http::OriginGuard guard_;
  std::string description_{};  // /app.json
};

}  // namespace zeus::web
