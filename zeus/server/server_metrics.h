#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "zeus/budget/budget_server.h"
#include "zeus/job/job.h"
#include "zeus/metrics/http_metrics.h"
#include "zeus/metrics/metric.h"
#include "zeus/plan/planner_cache.h"

namespace zeus::server {

// Counts the server's work since its start, for Prometheus. Thread-safe.
class ServerMetrics {
 public:
  void CountJob() { ++jobs_created_; }
  void CountTrial(const Trial& trial);
  void CountPlan() { ++plans_created_; }
  void CountPaceReport() { ++pace_reports_; }
  void CountExpired(int trials) { expired_ += static_cast<std::uint64_t>(trials); }
  HttpMetrics& requests() { return http_; }

  void AddTo(MetricSet& metrics) const;

 private:
  std::atomic<std::uint64_t> jobs_created_ = 0;
  std::atomic<std::uint64_t> expired_ = 0;
  std::atomic<std::uint64_t> plans_created_ = 0;
  std::atomic<std::uint64_t> pace_reports_ = 0;
  HttpMetrics http_;
  mutable std::mutex mutex_;
  std::map<TrialStatus, std::uint64_t> trial_answers_{};  // By status. Guarded by mutex_.
};

// Metrics of the other parts of the server.
void AddSolveFigures(const SolveFigures& figures, MetricSet& metrics);
void AddBudgetFigures(const budget::BudgetServer::Figures& figures, MetricSet& metrics);

}  // namespace zeus::server
