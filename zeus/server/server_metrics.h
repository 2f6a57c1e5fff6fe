#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "zeus/http/access_control.h"
#include "zeus/http/message.h"
#include "zeus/http/server.h"
#include "zeus/job/job.h"
#include "zeus/metrics/metric.h"
#include "zeus/plan/planner_cache.h"

namespace zeus::server {

// Counts the server's work since its start, for Prometheus. Thread-safe.
class ServerMetrics {
 public:
  void Observe(const http::FinishedRequest& request);
  void CountJob() { ++jobs_created_; }
  void CountTrial(const Trial& trial);
  void CountPlan() { ++plans_created_; }
  void CountPaceReport() { ++pace_reports_; }
  void CountExpired(int trials) { expired_ += static_cast<std::uint64_t>(trials); }
  // The HTTP server keeps these up to date.
  http::ConnectionCounts& connections() { return connections_; }

  void AddTo(MetricSet& metrics) const;

 private:
  using RequestKey =
      std::tuple<std::string, std::string, int>;  // The key is route, method and status.

  std::atomic<std::uint64_t> jobs_created_ = 0;
  std::atomic<std::uint64_t> expired_ = 0;
  std::atomic<std::uint64_t> plans_created_ = 0;
  std::atomic<std::uint64_t> pace_reports_ = 0;
  http::ConnectionCounts connections_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::map<RequestKey, std::uint64_t> requests_{};
  std::map<std::string, Histogram> durations_{};          // By route.
  std::map<TrialStatus, std::uint64_t> trial_answers_{};  // By the trial's status.
};

// Metrics of the other parts of the server.
void AddLoginCounts(const http::AccessControl::Counts& counts, MetricSet& metrics);
void AddDroppedLogLines(std::uint64_t lines, MetricSet& metrics);
void AddSolveFigures(const SolveFigures& figures, MetricSet& metrics);

}  // namespace zeus::server
