#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/daemon/caller.h"
#include "zeus/daemon/grant.h"
#include "zeus/daemon/scope.h"
#include "zeus/http/message.h"
#include "zeus/http/router.h"
#include "zeus/wire/node/lease.h"

// The parts that all routes of the daemon share: a request with its caller, parameters, answers.
namespace zeus::daemon {

// One request, the process behind it, and what that process may do. Lives as long as its handler.
struct Call {
  const http::Request& request;
  std::shared_ptr<const Caller> caller;
  std::shared_ptr<const Grant> shared_grant;
  const Grant& grant = *shared_grant;
  std::optional<WallTime> token_expires{};

  std::optional<std::string> Query(const std::string& name) const;
};

// The families of the reference's requests that a daemon may serve or not.
enum class ApiGroup { kNone, kGpuControl, kGpuRead, kCpuRead };

// A route of the daemon, with the facts that access control and the documentation need.
struct NodeRoute {
  std::string_view method{};
  std::string_view pattern{};  // "/v1/leases/{id}"
  std::function<http::Answer(const Call&)> handler{};
  std::string_view summary{};
  std::vector<std::string_view> query{};  // The parameters that the route accepts.
  std::vector<int> statuses{200};
  std::string_view request_schema{};    // Empty: the request has no body.
  std::string_view answer_schema{};     // Empty: the answer has no JSON body.
  bool streamed = false;                // The answer is server-sent events of that schema.
  std::optional<Scope> scope{};         // nullopt: every known caller.
  bool open = false;                    // Over TCP also without a token.
  ApiGroup group = ApiGroup::kNone;     // The group of a reference's request.
  http::Work work = http::Work::kRead;  // kImmediate blocks on nothing.
  bool vital = false;                   // Answered even when all connections are taken.
};

// The table of all routes. Built once, then read by many threads.
class RouteTable {
 public:
  void Add(NodeRoute route);

  struct Match {
    const NodeRoute* route = nullptr;
    http::RouteMatch match{};
  };
  Match Find(std::string_view method, const std::vector<std::string>& segments) const;
  const std::vector<NodeRoute>& routes() const { return routes_; }

 private:
  http::Router router_{};
  std::vector<NodeRoute> routes_{};  // In the order of those of router_.
};

// Answers with an error: {"error": {"code": "conflict", "message": "…", …}}.
http::Answer ToAnswer(const wire::LeaseRefusal& refusal);
http::Answer ToAnswer(const Error& error);

// The JSON of a body, which must be an object. An empty body is an empty object.
Result<Json> BodyOf(const http::Request& request);

// Parameters. kInvalidArgument names the parameter.
Result<std::optional<double>> NumberParameter(const Call& call, const std::string& name);
Result<std::optional<bool>> BoolParameter(const Call& call, const std::string& name);
Result<std::uint64_t> WholeParameter(const Call& call, const std::string& name,
                                     std::uint64_t otherwise, std::uint64_t highest);

}  // namespace zeus::daemon
