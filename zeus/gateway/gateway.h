#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/gateway/clock_driver.h"
#include "zeus/gateway/metering.h"
#include "zeus/gateway/proxy.h"
#include "zeus/metrics/metric.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::gateway {

struct GatewayUpstream {
  http::Url url{};
  std::vector<std::string> models{};   // Declared; what it lists itself is added.
  std::vector<std::size_t> devices{};  // Its GPUs, as devices of the monitor.
  std::string absent_reason{};         // Why there are none.
};

struct GatewayOptions {
  std::string listen = "127.0.0.1:0";
  std::optional<http::TlsFiles> tls{};
  std::string authorities{};
  ProxyLimits limits{};
  std::vector<GatewayUpstream> upstreams{};
  bool ask_usage = true;  // Ask for token counts where the client does not.
  std::string
      key_header{};  // The header whose value labels requests; empty: a hash of the API key.
  MeteringOptions metering{};
  // Governs the clocks of the upstreams' GPUs; may be null. Must outlive the gateway.
  ClockDriver* governor = nullptr;
  // Adds the metrics of the machine, from any thread.
  std::function<void(MetricSet&)> machine_metrics{};
};

// The gateway in front of servers of language models: passes requests on and meters them. The
// monitor (nullptr: no energy) and the clock must outlive it. Threads: one of its own.
class Gateway {
 public:
  static Result<std::unique_ptr<Gateway>> Start(GatewayOptions options, EnergyMonitor* monitor,
                                                const Clock& clock);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  const std::string& url() const;
  // Stops listening and closes idle connections; requests that have begun may finish.
  void BeginShutdown();
  // Returns true as soon as the last client is gone, and false after `timeout`.
  bool WaitForShutdown(Seconds timeout);

 private:
  class Handler;
  Gateway(std::unique_ptr<Handler> handler, std::unique_ptr<Proxy> proxy);

  std::unique_ptr<Handler> handler_;
  std::unique_ptr<Proxy> proxy_;
};

}  // namespace zeus::gateway
