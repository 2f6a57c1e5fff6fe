#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/job/job_service.h"
#include "zeus/plan/pipeline_sessions.h"
#include "zeus/plan/plan_service.h"
#include "zeus/server/access_log.h"
#include "zeus/server/http_message.h"
#include "zeus/server/login_limiter.h"
#include "zeus/server/origin_guard.h"
#include "zeus/server/quotas.h"
#include "zeus/server/router.h"
#include "zeus/server/server_metrics.h"
#include "zeus/server/token_store.h"

namespace zeus::server {

struct ApiOptions {
  PlanService* plans = nullptr;          // nullptr: there is no planning here.
  PipelineSessions* sessions = nullptr;  // nullptr: nor for the reference's clients.
  Seconds rank_patience = Seconds(600);  // How long a rank waits for the others.
  const TokenFile* tokens = nullptr;     // nullptr: everybody may do everything.
  LoginLimiter* logins = nullptr;        // nullptr: wrong tokens may come for ever.
  Quotas* quotas = nullptr;              // nullptr: name spaces have no limits.
  // Says what saved energy is in emissions and money; nullptr: it is not said.
  const CarbonAccounting* carbon = nullptr;
  OriginGuard::Options origins{};
  // How much a name space holds.
  std::function<Result<Usage>(const std::string& name_space)> usage{};
  std::function<Status()> ready{};                 // Whether the database takes changes.
  std::function<void(MetricSet&)> more_metrics{};  // Of whom the server does not know.
  std::string version{};
};

// Everything that can be asked over HTTP, without the sockets. Thread-safe. What it is given must
// outlive it.
class Api final : public RequestHandler {
 public:
  // `log` may be null.
  Api(JobService& service, ServerMetrics& metrics, AccessLog* log, ApiOptions options);

  WaitsFor Weigh(const HttpRequest& request) const override;
  Admission Admit(const HttpRequest& header) override;
  HttpAnswer Handle(HttpRequest& request) override;
  HttpAnswer Refusal(int status, const std::string& why) override;
  void Finished(const FinishedRequest& request) override;

  const Router& router() const { return router_; }

 private:
  HttpAnswer Answer(HttpRequest& request);
  // The sender of a request, as far as the token says.
  struct Visitor {
    std::string user{};
    std::string name_space{};
    Role role = Role::kAdmin;
  };
  std::optional<HttpAnswer> RefuseAccess(const HttpRequest& request, const Route& route,
                                         Visitor& visitor);
  std::optional<HttpAnswer> RefuseLogin(const HttpRequest& request, Dialect dialect,
                                        Visitor& visitor);
  std::optional<HttpAnswer> RefuseNameSpace(const HttpRequest& request, Dialect dialect,
                                            Visitor& visitor) const;
  Result<HttpAnswer> ListNameSpaces() const;
  HttpAnswer AnswerReadiness(const HttpRequest& request) const;
  void AddSystemRoutes();

  ServerMetrics& metrics_;
  AccessLog* const log_;
  const ApiOptions options_;
  const OriginGuard guard_;
  Router router_{};
  std::string openapi_{};
};

}  // namespace zeus::server
