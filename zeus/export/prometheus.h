#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/export/append_only_file.h"
#include "zeus/export/sample.h"
#include "zeus/http/client.h"
#include "zeus/metrics/metric.h"
#include "zeus/monitor/measurement.h"

namespace zeus {

// Adds the readings of all devices. Energies are the totals of the recording, so nothing is lost
// between two scrapes however far apart they are.
void AddSample(const Sample& sample, MetricSet& metrics);

// Adds the version of this program and its CPU time.
void AddProcess(std::string_view version, Seconds cpu_time, MetricSet& metrics);

// The CPU time that this process has used.
Seconds ProcessCpuTime();

// Sums of finished windows by name. Thread-safe.
class WindowMetrics {
 public:
  // Names beyond this number are summed as "other": a window name per step must not fill a
  // database.
  explicit WindowMetrics(std::size_t most_names = 200) : most_names_(most_names) {}

  void Observe(const Measurement& measurement);
  void AddTo(MetricSet& metrics) const;

 private:
  struct Series {
    Histogram ours;
    Histogram reference;
  };
  using Key = std::pair<std::string, std::string>;  // The key is window and device.

  const std::size_t most_names_;
  mutable std::mutex mutex_;
  std::set<std::string> names_;  // Guarded by mutex_, like the next member.
  std::map<Key, Series> series_;
};

// Metrics of one job and instance replace only each other: with the rank or the host as instance,
// ranks of a job do not overwrite each other.
struct PushTarget {
  std::string url;  // "http://host:9091", https likewise, with a path in front if it has one.
  std::string job;
  std::string instance;
};

// The path below the URL: "/metrics/job/train/instance/node1". Values that a path cannot hold are
// in base64, as the gateway wants them.
std::string PushPath(const PushTarget& target);

// A Prometheus push gateway, for programs that no server can scrape. One owner.
class PushGateway {
 public:
  // Returns kInvalidArgument when the URL is malformed or job or instance are empty.
  static Result<std::unique_ptr<PushGateway>> Create(const PushTarget& target);
  ~PushGateway();

  // Replaces what was pushed for this job and instance. Waits a few seconds at most for a gateway
  // that does not answer.
  Status Push(const std::string& text);

  // As Push(), but a failure is said once, not returned: pushing must not disturb the program.
  void TryPush(const std::string& text) { notice_.Note(Push(text)); }
  bool working() const { return notice_.working(); }

 private:
  PushGateway(std::unique_ptr<http::Client> client, std::string path, const std::string& url);

  std::unique_ptr<http::Client> client_;
  const std::string path_;
  FailureNotice notice_;
};

}  // namespace zeus
