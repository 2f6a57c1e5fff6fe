#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/fleet/fleet_table.h"
#include "zeus/fleet/node_report.h"
#include "zeus/http/client.h"

namespace zeus::fleet {

struct CollectorOptions {
  std::vector<std::string> nodes{};  // URLs of zeusd or `zeus monitor --serve`.
  std::string prometheus{};          // URL; empty: none is asked.
  std::string token{};               // For the nodes.
  std::string authorities{};         // PEM file; empty: the system's.
  Seconds interval{10};
  BestLimits best_limits{};
};

// Looks at many nodes, each once in an interval, on a few threads, and fills a table. A node that
// does not answer delays only the thread that asks it, and is asked seldom. The clock and the table
// must outlive it.
class Collector {
 public:
  // Starts to look. kInvalidArgument for a malformed URL.
  static Result<std::unique_ptr<Collector>> Start(const CollectorOptions& options, Clock& clock,
                                                  FleetTable& table);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

 private:
  class Target;
  Collector(const CollectorOptions& options, Clock& clock, FleetTable& table);

  TimePoint LookAtDue();
  Status LookAt(Target& target);
  TimePoint AskPrometheus();
  Status ReadPrometheus();

  const CollectorOptions options_;
  Clock& clock_;
  FleetTable& table_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Target>> targets_{};  // Each is used by one thread at a time.
  std::unique_ptr<http::Client> prometheus_{};
  std::vector<std::unique_ptr<Ticker>> threads_{};
};

}  // namespace zeus::fleet
