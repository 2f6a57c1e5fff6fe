#include "apps/zeus/monitor/site.h"

#include <utility>

#include "zeus/http/server.h"
#include "zeus/http/url.h"
#include "zeus/live/node_site.h"
#include "zeus/web/application_files.h"

namespace zeus::cli {
namespace {

class PageSite final : public MonitorSite {
 public:
  PageSite(NodeMonitor& node, live::NodeSite::Options options) : site_(node, std::move(options)) {}

  Status Start(const http::ServerOptions& options, const Clock& clock) {
    ZEUS_TRY(server_, http::Server::Start(options, site_, counts_, clock));
    return Ok();
  }

  std::string url() const override { return server_->url(); }
  bool has_pages() const override { return !web::ApplicationFiles().empty(); }

 private:
  live::NodeSite site_;
  http::ConnectionCounts counts_;
  std::unique_ptr<http::Server> server_;  // Ends before the handler does.
};

}  // namespace

Status PrepareMonitorSite() { return Ok(); }

Result<std::unique_ptr<MonitorSite>> StartMonitorSite(const std::string& address, NodeMonitor& node,
                                                      MonitorSite::Sources sources) {
  ZEUS_TRY(const http::ListenAddress listen, http::ParseListenAddress(address));
  if (listen.is_unix())
    return InvalidArgument(
        "--serve: pages and metrics are served over TCP only: use host:port, [::1]:port or a port");
  const http::ServerOptions options{
      .listen = address,
      .limits = {.body = 4096, .connections = http::ConnectionsByOpenFiles(), .workers = 4}};
  auto site = std::make_unique<PageSite>(
      node, live::NodeSite::Options{
                .metrics = std::move(sources.metrics),
                .costs = std::move(sources.costs),
                .origins = {.local = http::IsLocal(address), .listen_host = listen.host}});
  ZEUS_RETURN_IF_ERROR(site->Start(options, node.monitor().clock()));
  return std::unique_ptr<MonitorSite>(std::move(site));
}

}  // namespace zeus::cli
