#include "zeus/metrics/http_metrics.h"

#include <array>

namespace zeus {
namespace {

// clang-format off
constexpr MetricDescription kRequests{"zeus_server_requests_total", MetricType::kCounter,
    "route, method, status", "Requests that were answered."};
constexpr MetricDescription kDuration{"zeus_server_request_duration_seconds",
    MetricType::kHistogram, "route", "From the last byte of a request to the last of its answer."};
constexpr MetricDescription kConnections{"zeus_server_connections", MetricType::kGauge, "",
    "Open connections."};
constexpr MetricDescription kStreams{"zeus_server_event_streams", MetricType::kGauge, "",
    "Open connections that follow events."};
constexpr MetricDescription kRefused{"zeus_server_connections_refused_total", MetricType::kCounter,
    "", "Connections beyond the greatest number."};
constexpr MetricDescription kFailedLogins{"zeus_server_logins_failed_total", MetricType::kCounter,
    "reason", "Requests whose token was missing or wrong."};
constexpr MetricDescription kRefusedLogins{"zeus_server_logins_refused_total",
    MetricType::kCounter, "", "Requests from addresses that had sent too many wrong tokens."};
constexpr MetricDescription kDroppedLines{"zeus_server_log_lines_dropped_total",
    MetricType::kCounter, "", "Lines of the access log that could not be written."};
// clang-format on

constexpr std::array kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                0.1,    0.25,  0.5,    1.0,   2.5,  10.0};

}  // namespace

void HttpMetrics::Observe(http::FinishedRequest request) {
  if (request.route.empty()) {
    request.route = "none";
    request.method = "other";
  }
  const std::lock_guard lock(mutex_);
  ++requests_[{request.route, request.method, request.status}];
  durations_.try_emplace(request.route, kBounds).first->second.Observe(request.duration.count());
}

void HttpMetrics::AddTo(MetricSet& metrics) const {
  const auto number = [](const auto& value) { return static_cast<double>(value); };
  metrics.Add(kConnections, {}, number(connections_.open.load()));
  metrics.Add(kStreams, {}, number(connections_.streams.load()));
  metrics.Add(kRefused, {}, number(connections_.refused.load()));
  const std::lock_guard lock(mutex_);
  for (const auto& [key, count] : requests_)
    metrics.Add(kRequests,
                {{"route", std::get<0>(key)},
                 {"method", std::get<1>(key)},
                 {"status", std::to_string(std::get<2>(key))}},
                number(count));
  for (const auto& [route, histogram] : durations_)
    metrics.Add(kDuration, {{"route", route}}, histogram);
}

void AddLoginCounts(const http::AccessControl::Counts& counts, MetricSet& metrics) {
  metrics.Add(kFailedLogins, {{"reason", "missing"}}, static_cast<double>(counts.missing_tokens));
  metrics.Add(kFailedLogins, {{"reason", "wrong"}}, static_cast<double>(counts.wrong_tokens));
  metrics.Add(kRefusedLogins, {}, static_cast<double>(counts.refused_logins));
}

void AddDroppedLogLines(std::uint64_t lines, MetricSet& metrics) {
  metrics.Add(kDroppedLines, {}, static_cast<double>(lines));
}

}  // namespace zeus
