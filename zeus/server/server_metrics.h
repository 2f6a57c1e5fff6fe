#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "zeus/job/job.h"
#include "zeus/metrics/metric.h"
#include "zeus/plan/planner_cache.h"
#include "zeus/server/http_message.h"

namespace zeus::server {

// What the server did since it started, for Prometheus. Thread-safe.
class ServerMetrics {
 public:
  void Observe(const FinishedRequest& request);
  void CountJob() { ++jobs_created_; }
  void CountTrial(const Trial& trial);
  void CountPlan() { ++plans_created_; }
  void CountPaceReport() { ++pace_reports_; }
  void CountExpired(int trials) { expired_ += static_cast<std::uint64_t>(trials); }
  void CountRefusedConnection() { ++connections_refused_; }
  enum class FailedLogin { kMissing, kWrong };
  void CountFailedLogin(FailedLogin reason) {
    ++(reason == FailedLogin::kMissing ? logins_missing_ : logins_wrong_);
  }
  void CountRefusedLogin() { ++logins_refused_; }
  void SetConnections(std::size_t open, std::size_t streams) {
    connections_ = open;
    streams_ = streams;
  }

  void AddTo(MetricSet& metrics) const;

 private:
  using RequestKey = std::tuple<std::string, std::string, int>;  // Route, method, status.

  std::atomic<std::uint64_t> jobs_created_ = 0;
  std::atomic<std::uint64_t> expired_ = 0;
  std::atomic<std::uint64_t> plans_created_ = 0;
  std::atomic<std::uint64_t> pace_reports_ = 0;
  std::atomic<std::uint64_t> connections_refused_ = 0;
  std::atomic<std::uint64_t> logins_missing_ = 0;
  std::atomic<std::uint64_t> logins_wrong_ = 0;
  std::atomic<std::uint64_t> logins_refused_ = 0;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::size_t> streams_ = 0;
  mutable std::mutex mutex_;
  std::map<RequestKey, std::uint64_t> requests_{};        // Guarded by mutex_, as are the next.
  std::map<std::string, Histogram> durations_{};          // By route.
  std::map<TrialStatus, std::uint64_t> trial_answers_{};  // By the trial's status.
};

// What solving pipelines took.
void AddSolveFigures(const SolveFigures& figures, MetricSet& metrics);

}  // namespace zeus::server
