#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/server/http_message.h"
#include "zeus/server/target.h"

namespace zeus::server {

// Who may call a route.
enum class Access {
  kOpen,   // Everybody.
  kRead,   // Every token.
  kWrite,  // Tokens that are not for reading only.
  kAdmin,  // Those of administrators.
};

// How errors look: ours, or as the reference's framework writes them.
enum class Dialect { kOurs, kReference };

// A route, with what its document says about it (openapi.h).
struct Route {
  std::string_view method;
  std::string_view pattern;  // "/v1/jobs/{id}"
  Access access = Access::kRead;
  Dialect dialect = Dialect::kOurs;
  std::function<Result<HttpAnswer>(const HttpRequest&)> handler{};
  std::string_view summary;
  std::string_view request_schema{};  // Empty: no body.
  std::string_view answer_schema{};   // Empty: no body.
  std::vector<int> statuses{};        // Those that are its own; 401, 403 and 5xx go without saying.
  std::vector<std::string_view> query{};  // Parameters it knows.
  bool at_once = false;                   // Needs no database.
  bool plans = false;       // May have to solve a frontier first, which takes the processor long.
  bool large_body = false;  // Takes bodies of up to HttpLimits::large_body.
  bool vital = false;       // Answered even when all connections are taken.
};

// A match, or the reason why there is none.
struct RouteMatch {
  const Route* route = nullptr;
  std::vector<std::string> parameters{};  // In the order of the pattern.
  std::vector<std::string> allowed{};     // Methods of the path, when only the method is wrong.
};

// The table of all routes. Built once, then read by many threads.
class Router {
 public:
  void Add(Route route);
  // HEAD is GET without the body, where a GET changes nothing.
  RouteMatch Find(std::string_view method, const std::vector<std::string>& segments) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_{};
  std::vector<std::vector<std::string>> patterns_{};  // Segments of each route.
};

}  // namespace zeus::server
