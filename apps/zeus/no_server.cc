// Replaces the sessions of `zeus serve` and `zeus llm` where Zeus is built without its servers
// (-DZEUS_SERVER=OFF), which need Boost: the verbs are there and say why they do nothing.
#include "apps/zeus/fleet/fleet_session.h"
#include "apps/zeus/http_server_frame.h"
#include "apps/zeus/llm/bench_session.h"
#include "apps/zeus/llm/colosseum_session.h"
#include "apps/zeus/llm/gateway_session.h"
#include "apps/zeus/llm/sim_session.h"
#include "apps/zeus/monitor/site.h"
#include "apps/zeus/serve/serve_session.h"
#include "zeus/http/url.h"
#include "zeus/metrics/metrics_server.h"

namespace zeus::cli {
namespace {

Error BuiltWithoutServers() {
  return {ErrorCode::kNotSupported,
          "this zeus was built without its servers: ./dev build builds it with everything"};
}

// The metrics alone: they need no Boost.
class MetricsSite final : public MonitorSite {
 public:
  explicit MetricsSite(std::unique_ptr<MetricsServer> server) : server_(std::move(server)) {}
  std::string url() const override { return server_->url(); }
  bool has_pages() const override { return false; }

 private:
  const std::unique_ptr<MetricsServer> server_;
};

}  // namespace

Status PrepareMonitorSite() { return Ok(); }

Result<std::unique_ptr<MonitorSite>> StartMonitorSite(const std::string& address,
                                                      NodeMonitor& /*node*/,
                                                      MonitorSite::Sources sources) {
  ZEUS_TRY(const http::ListenAddress listen, http::ParseListenAddress(address));
  ZEUS_TRY(auto server, MetricsServer::Start(listen, std::move(sources.metrics)));
  return std::unique_ptr<MonitorSite>(std::make_unique<MetricsSite>(std::move(server)));
}

Result<int> RunFleet(const FleetOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> RunServe(const ServeOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> MakeToken(const HttpServerOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> RunLlmBench(const LlmBenchOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> RunColosseum(const ColosseumOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> RunLlmGateway(const LlmGatewayOptions& /*options*/) { return BuiltWithoutServers(); }
Result<int> RunLlmSim(const LlmSimOptions& /*options*/) { return BuiltWithoutServers(); }

}  // namespace zeus::cli
