#pragma once

#include <functional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/colosseum/arena.h"
#include "zeus/http/access_log.h"
#include "zeus/http/routed_handler.h"
#include "zeus/metrics/http_metrics.h"
#include "zeus/metrics/metric.h"
#include "zeus/web/application.h"

namespace zeus::colosseum {

struct ColosseumApiOptions {
  http::AccessControl::Options access{};
  std::function<Status()> ready{};                 // Whether the database accepts changes.
  std::function<void(MetricSet&)> more_metrics{};  // Metrics of the process.
  std::string version{};
  const web::Application* application = nullptr;  // nullptr: the server has no pages.
};

// The Colosseum's server without its sockets: duels under /zeus/duels, the leaderboard, and the
// routes of the reference's backend for its clients. Thread-safe. The referenced objects must
// outlive it; `log` may be null.
class ColosseumApi final : public http::RoutedHandler {
 public:
  ColosseumApi(Arena& arena, HttpMetrics& metrics, http::AccessLog* log,
               ColosseumApiOptions options);

  void Finished(const http::FinishedRequest& request) override;

 private:
  http::Answer ErrorAnswer(const Error& error, http::Dialect dialect) const override;
  bool IsForPage(const http::Request& request) const override {
    return options_.application != nullptr && web::Application::Has(request);
  }
  http::Answer PageAnswer(const http::Request& request) const override {
    return options_.application->Answer(request);
  }
  void AddSystemRoutes();
  http::Answer Metrics() const;
  http::Answer Readiness() const;

  Arena& arena_;
  HttpMetrics& metrics_;
  http::AccessLog* const log_;
  const ColosseumApiOptions options_;
  std::string openapi_{};
};

}  // namespace zeus::colosseum
