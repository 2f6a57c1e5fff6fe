#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "zeus/daemon/api/daemon.h"
#include "zeus/export/sample.h"
#include "zeus/http/message.h"
#include "zeus/http/server.h"
#include "zeus/metrics/metric.h"

namespace zeus::daemon {

// Counts the daemon's work, and writes its metrics with those of the devices. Thread-safe.
class NodeMetrics {
 public:
  enum class Denial { kToken, kNoToken, kScope };

  void Observe(const http::FinishedRequest& request);
  void CountDenial(Denial reason) { ++denials_[static_cast<std::size_t>(reason)]; }
  // Each server keeps its own up to date.
  http::ConnectionCounts& unix_connections() { return unix_connections_; }
  http::ConnectionCounts& tcp_connections() { return tcp_connections_; }

  // The exposition text of everything that the reader may see.
  std::string Text(Daemon& daemon, const Grant& reader);

 private:
  void AddRequests(MetricSet& metrics) const;

  http::ConnectionCounts unix_connections_;
  http::ConnectionCounts tcp_connections_;
  std::array<std::atomic<std::uint64_t>, 3> denials_{};
  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::map<std::pair<std::string, int>, std::uint64_t> requests_{};  // By route and status.
  std::map<std::string, Histogram> durations_{};                     // By route.
  std::unique_ptr<NodeSampler> sampler_{};
};

}  // namespace zeus::daemon
