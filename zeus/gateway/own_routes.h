#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/gateway/clock_driver.h"
#include "zeus/gateway/http_head.h"
#include "zeus/gateway/metering.h"
#include "zeus/gateway/proxy.h"
#include "zeus/http/message.h"

namespace zeus::gateway {

// Answers the gateway's own paths, /zeus/..., except the stream of /zeus/live. Runs on the proxy's
// thread. The referenced objects must outlive it.
class OwnRoutes {
 public:
  struct Parts {
    const Metering& metering;
    const ProxyCounts& counts;
    std::function<void(MetricSet&)> machine_metrics;
    ClockDriver* governor;  // May be null.
    const Clock& clock;
  };
  explicit OwnRoutes(Parts parts)
      : metering_(parts.metering),
        counts_(parts.counts),
        machine_metrics_(std::move(parts.machine_metrics)),
        governor_(parts.governor),
        clock_(parts.clock) {}

  http::Answer Answer(const ProxyRequest& request) const;

 private:
  http::Answer Read(const RequestHead& head) const;
  http::Answer Governor() const;
  http::Answer SwitchGovernor(const ProxyRequest& request) const;
  http::Answer OneRequest(std::string_view id) const;
  http::Answer Requests(std::string_view query) const;
  http::Answer Health() const;
  http::Answer Metrics() const;

  const Metering& metering_;
  const ProxyCounts& counts_;
  const std::function<void(MetricSet&)> machine_metrics_;
  ClockDriver* const governor_;
  const Clock& clock_;
};

}  // namespace zeus::gateway
