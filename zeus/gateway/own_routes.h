#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/gateway/http_head.h"
#include "zeus/gateway/metering.h"
#include "zeus/gateway/proxy.h"
#include "zeus/http/message.h"

namespace zeus::gateway {

// Answers the gateway's own paths, /zeus/..., except the stream of /zeus/live. Runs on the proxy's
// thread. The referenced objects must outlive it.
class OwnRoutes {
 public:
  OwnRoutes(const Metering& metering, const ProxyCounts& counts,
            std::function<void(MetricSet&)> machine_metrics, const Clock& clock)
      : metering_(metering),
        counts_(counts),
        machine_metrics_(std::move(machine_metrics)),
        clock_(clock) {}

  http::Answer Answer(const RequestHead& head) const;

 private:
  http::Answer OneRequest(std::string_view id) const;
  http::Answer Requests(std::string_view query) const;
  http::Answer Health() const;
  http::Answer Metrics() const;

  const Metering& metering_;
  const ProxyCounts& counts_;
  const std::function<void(MetricSet&)> machine_metrics_;
  const Clock& clock_;
};

}  // namespace zeus::gateway
