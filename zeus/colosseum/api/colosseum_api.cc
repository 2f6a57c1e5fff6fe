#include "zeus/colosseum/api/colosseum_api.h"

#include <utility>

#include "zeus/base/json.h"
#include "zeus/colosseum/api/colosseum_openapi.h"
#include "zeus/colosseum/api/duel_routes.h"
#include "zeus/metrics/metric_catalogue.h"

namespace zeus::colosseum {
namespace {

using http::Access;
using http::Answer;
using http::Request;

// Refusals of duels have their statuses in RefusalOf(); these are mistakes in requests.
Answer MistakeAnswer(const Error& error, http::Dialect dialect) {
  const bool mistaken = error.code == ErrorCode::kInvalidArgument;
  return http::RefusalAnswer(mistaken ? 422 : 503, mistaken ? "invalid_argument" : "unavailable",
                             error.message, dialect);
}

void AddArenaCounts(const ArenaCounts& counts, MetricSet& set) {
  const auto add = [&](const char* outcome, std::uint64_t count) {
    set.Add(metrics::kColosseumDuels, {{"outcome", outcome}}, static_cast<double>(count));
  };
  add("begun", counts.created);
  add("failed", counts.failed);
  add("abandoned", counts.abandoned);
  add("overloaded", counts.overloaded);
  set.Add(metrics::kColosseumAnswering, {}, static_cast<double>(counts.answering));
  for (const auto& [ballot, count] : counts.votes)
    set.Add(metrics::kColosseumVotes, {{"ballot", std::string(Name(ballot))}},
            static_cast<double>(count));
  set.Add(metrics::kColosseumRefusedVotes, {}, static_cast<double>(counts.refused_votes));
}

}  // namespace

ColosseumApi::ColosseumApi(Arena& arena, HttpMetrics& metrics, http::AccessLog* log,
                           ColosseumApiOptions options)
    : http::RoutedHandler(options.access),
      arena_(arena),
      metrics_(metrics),
      log_(log),
      options_(std::move(options)) {
  AddDuelRoutes(arena_, table());
  AddReferenceRoutes(arena_, table());
  AddSystemRoutes();
  openapi_ = JsonText(OpenApiDocument(router().routes(), options_.version));
}

void ColosseumApi::AddSystemRoutes() {
  const auto add = [this](std::string_view pattern, Access access, std::string_view summary,
                          std::string_view schema, auto handler) {
    table().Add({.method = "GET",
                 .pattern = pattern,
                 .access = access,
                 .handler = [handler](const Request&) -> Result<Answer> { return handler(); },
                 .summary = summary,
                 .answer_schema = schema,
                 .statuses = {200},
                 .immediate = pattern != "/readyz",
                 .vital = pattern == "/healthz" || pattern == "/metrics"});
  };
  add("/healthz", Access::kOpen, "Whether the server runs", "Health", [] {
    return http::JsonAnswer(200, {{"status", "ok"}});
  });
  add("/readyz", Access::kOpen, "Whether the database takes changes; 503 if not", "Health",
      [this] { return Readiness(); });
  add("/openapi.json", Access::kOpen, "This document", "OpenApi",
      [this] { return Answer{.body = openapi_}; });
  add("/metrics", Access::kRead, "Metrics for Prometheus", "", [this] { return Metrics(); });
}

Answer ColosseumApi::Readiness() const {
  if (!options_.ready || options_.ready().ok()) return http::JsonAnswer(200, {{"status", "ready"}});
  return http::RefusalAnswer(503, "unavailable",
                             "the database does not take changes: the server's log says why");
}

Answer ColosseumApi::Metrics() const {
  MetricSet set;
  metrics_.AddTo(set);
  AddLoginCounts(access().counts(), set);
  if (log_ != nullptr) AddDroppedLogLines(log_->dropped_lines(), set);
  AddArenaCounts(arena_.counts(), set);
  if (options_.more_metrics) options_.more_metrics(set);
  return {.body = set.Text(), .content_type = MetricSet::kContentType};
}

Answer ColosseumApi::ErrorAnswer(const Error& error, http::Dialect dialect) const {
  return MistakeAnswer(error, dialect);
}

void ColosseumApi::Finished(const http::FinishedRequest& request) {
  metrics_.Observe(request);
  if (log_ != nullptr) log_->Add(request);
}

}  // namespace zeus::colosseum
