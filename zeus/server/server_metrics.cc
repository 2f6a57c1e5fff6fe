#include "zeus/server/server_metrics.h"

#include <array>

namespace zeus::server {
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
constexpr MetricDescription kJobs{"zeus_server_jobs_created_total", MetricType::kCounter, "",
    "Jobs that were registered for the first time."};
constexpr MetricDescription kTrials{"zeus_server_trial_answers_total", MetricType::kCounter,
    "status", "Answers to what runners ask and report, by the status of their trial."};
constexpr MetricDescription kExpired{"zeus_server_trials_expired_total", MetricType::kCounter, "",
    "Trials that were not heard of for the time of their lease."};
constexpr MetricDescription kPlans{"zeus_server_plans_created_total", MetricType::kCounter, "",
    "Plans that were submitted for the first time."};
constexpr MetricDescription kPaceReports{"zeus_server_pace_reports_total", MetricType::kCounter,
    "", "Reports that a straggler came or went."};
constexpr MetricDescription kSolves{"zeus_server_plan_solves_total", MetricType::kCounter,
    "outcome", "Frontiers that were solved, or could not be."};
constexpr MetricDescription kSolveTime{"zeus_server_plan_solve_seconds_total",
    MetricType::kCounter, "", "Time that solving frontiers took."};
constexpr MetricDescription kSolved{"zeus_server_plans_solved", MetricType::kGauge, "",
    "Pipelines whose frontier is in memory."};
// clang-format on

constexpr std::array kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                0.1,    0.25,  0.5,    1.0,   2.5,  10.0};

}  // namespace

void ServerMetrics::Observe(const http::FinishedRequest& request) {
  const std::lock_guard lock(mutex_);
  ++requests_[{request.route, request.method, request.status}];
  durations_.try_emplace(request.route, kBounds).first->second.Observe(request.duration.count());
}

void ServerMetrics::CountTrial(const Trial& trial) {
  const std::lock_guard lock(mutex_);
  ++trial_answers_[trial.status];
}

void ServerMetrics::AddTo(MetricSet& metrics) const {
  const auto number = [](const auto& value) { return static_cast<double>(value); };
  metrics.Add(kConnections, {}, number(connections_.open.load()));
  metrics.Add(kStreams, {}, number(connections_.streams.load()));
  metrics.Add(kRefused, {}, number(connections_.refused.load()));
  metrics.Add(kJobs, {}, number(jobs_created_.load()));
  metrics.Add(kExpired, {}, number(expired_.load()));
  metrics.Add(kPlans, {}, number(plans_created_.load()));
  metrics.Add(kPaceReports, {}, number(pace_reports_.load()));
  const std::lock_guard lock(mutex_);
  for (const auto& [status, count] : trial_answers_)
    metrics.Add(kTrials, {{"status", std::string(Name(status))}}, number(count));
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

void AddSolveFigures(const SolveFigures& figures, MetricSet& metrics) {
  metrics.Add(kSolves, {{"outcome", "solved"}}, static_cast<double>(figures.solves));
  metrics.Add(kSolves, {{"outcome", "failed"}}, static_cast<double>(figures.failures));
  metrics.Add(kSolveTime, {}, figures.time.count());
  metrics.Add(kSolved, {}, static_cast<double>(figures.pipelines));
}

}  // namespace zeus::server
