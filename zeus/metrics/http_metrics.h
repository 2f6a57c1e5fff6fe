#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "zeus/http/access_control.h"
#include "zeus/http/message.h"
#include "zeus/http/server.h"
#include "zeus/metrics/metric.h"

namespace zeus {

// Counts the requests and connections of an HTTP server since its start, for Prometheus.
// Thread-safe.
class HttpMetrics {
 public:
  // Clients can invent any path and method: requests without a route share one label.
  void Observe(http::FinishedRequest request);
  // The HTTP server keeps these up to date.
  http::ConnectionCounts& connections() { return connections_; }

  void AddTo(MetricSet& metrics) const;

 private:
  // Route, method and status.
  using RequestKey = std::tuple<std::string, std::string, int>;

  http::ConnectionCounts connections_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::map<RequestKey, std::uint64_t> requests_{};
  std::map<std::string, Histogram> durations_{};  // By route.
};

// Metrics of the other parts of an HTTP server.
void AddLoginCounts(const http::AccessControl::Counts& counts, MetricSet& metrics);
void AddDroppedLogLines(std::uint64_t lines, MetricSet& metrics);

}  // namespace zeus
