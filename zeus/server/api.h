#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/job/job_service.h"
#include "zeus/plan/pipeline_sessions.h"
#include "zeus/plan/plan_service.h"
#include "zeus/server/access_log.h"
#include "zeus/server/http_message.h"
#include "zeus/server/router.h"
#include "zeus/server/server_metrics.h"
#include "zeus/server/token_store.h"

namespace zeus::server {

struct ApiOptions {
  PlanService* plans = nullptr;                    // nullptr: there is no planning here.
  PipelineSessions* sessions = nullptr;            // nullptr: nor for the reference's clients.
  Seconds rank_patience = Seconds(600);            // Of a rank with the others.
  std::optional<TokenStore> tokens{};              // nullopt: everybody may do everything.
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
  std::optional<HttpAnswer> RefuseAccess(const HttpRequest& request, const Route& route,
                                         std::string& user) const;
  HttpAnswer AnswerReadiness(const HttpRequest& request) const;
  void AddSystemRoutes();

  ServerMetrics& metrics_;
  AccessLog* const log_;
  const ApiOptions options_;
  Router router_{};
  std::string openapi_{};
};

}  // namespace zeus::server
