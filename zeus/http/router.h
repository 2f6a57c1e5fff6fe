#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/http/message.h"

namespace zeus::http {

// The target of a request, "/v1/jobs/a%20b?limit=5", split and decoded.
struct Target {
  std::vector<std::string> segments{};  // {"v1", "jobs", "a b"}
  std::map<std::string, std::string> query{};
};

// Returns kInvalidArgument for targets that are not a path, hold broken escapes or text that is not
// UTF-8, or name a parameter twice.
Result<Target> ParseTarget(std::string_view text);

// The callers that may use a route.
enum class Access {
  kOpen,   // All callers, without a token.
  kRead,   // Every token.
  kWrite,  // Tokens that are not for reading only.
  kAdmin,  // Tokens of administrators.
};

// A route, with the facts that its documentation is generated from.
struct Route {
  std::string_view method;
  std::string_view pattern;  // "/v1/jobs/{id}"
  Access access = Access::kRead;
  Dialect dialect = Dialect::kOurs;
  std::function<Result<Answer>(const Request&)> handler{};
  std::string_view summary{};
  std::string_view request_schema{};  // Empty: the request has no body.
  std::string_view answer_schema{};   // Empty: the answer has no JSON body.
  std::vector<int> statuses{};        // Without those that every route has: 401, 403, 429 and 5xx.
  std::vector<std::string_view> query{};  // The parameters that the route accepts.
  bool immediate = false;                 // Work::kImmediate: needs no database.
  bool slow = false;                      // Work::kSlow: may compute for seconds before it answers.
  bool large_body = false;                // Accepts bodies of up to Limits::large_body.
  bool vital = false;                     // Answered even when all connections are taken.
};

// The route of a request, or the reason why there is none.
struct RouteMatch {
  const Route* route = nullptr;
  std::vector<std::string> parameters{};  // In the order of the pattern.
  std::vector<std::string> allowed{};     // Methods of the path, when only the method is wrong.
};

// The table of all routes. Built once, then read by many threads.
class Router {
 public:
  void Add(Route route);
  // HEAD finds the GET route of a path, unless that route changes something.
  RouteMatch Find(std::string_view method, const std::vector<std::string>& segments) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_{};
  std::vector<std::vector<std::string>> patterns_{};  // Segments of each route.
};

// The answer to a request without a route: 405 with the methods there are, or 404.
Answer NoRouteAnswer(const Request& request, const RouteMatch& match);

// Returns kInvalidArgument when the query has a parameter that the route does not know: a misspelt
// one must not be ignored silently. Clients in the reference's dialect may send more.
Status CheckQuery(const Route& route, const Request& request);

// The work of a route; kImmediate when there is none, since refusing takes no time.
Work RouteWork(const Route* route);

}  // namespace zeus::http
