#include "apps/zeus/fleet/fleet_session.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <sstream>
#include <utility>

#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/fleet/collector.h"
#include "zeus/fleet/fleet_site.h"
#include "zeus/fleet/fleet_table.h"
#include "zeus/http/server.h"
#include "zeus/http/url.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLargestFile = 4 << 20;
constexpr Seconds kLongestPause = 60s;

Result<std::vector<std::string>> NodesOf(const FleetOptions& options) {
  std::vector<std::string> nodes = options.nodes;
  if (!options.nodes_file.empty()) {
    ZEUS_TRY(const std::string text, ReadSmallFile(options.nodes_file, kLargestFile));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (const std::string_view url = Trim(line); !url.empty() && !url.starts_with('#'))
        nodes.emplace_back(url);
  }
  if (nodes.empty() && options.prometheus.empty())
    return InvalidArgument("name nodes with --node or --nodes-file, or a --prometheus");
  if (nodes.size() > fleet::FleetTable::kMostNodes)
    return InvalidArgument(fmt::format("there are {} nodes, and {} at most can be watched",
                                       nodes.size(), fleet::FleetTable::kMostNodes));
  return nodes;
}

Result<fleet::CollectorOptions> CollectorOptionsOf(const FleetOptions& options) {
  fleet::CollectorOptions collector{.prometheus = options.prometheus,
                                    .authorities = options.tls_ca,
                                    .interval = Seconds(options.interval)};
  ZEUS_TRY(collector.nodes, NodesOf(options));
  if (!options.token_file.empty()) {
    ZEUS_TRY(const std::string token, ReadSmallFile(options.token_file, kLargestFile));
    collector.token = Trim(token);
  }
  for (const std::string& limit : options.best_limits)
    if (Status added = fleet::AddBestLimit(limit, collector.best_limits); !added.ok())
      return std::move(added).error().While("--best-limit");
  return collector;
}

}  // namespace

Result<int> RunFleet(const FleetOptions& options) {
  ZEUS_TRY(const http::ListenAddress address, http::ParseListenAddress(options.listen));
  if (address.is_unix())
    return InvalidArgument("--listen: browsers need host:port, [::1]:port or a port");
  ZEUS_TRY(const fleet::CollectorOptions wanted, CollectorOptionsOf(options));
  ZEUS_TRY(const auto signals, SignalWatch::Start(SignalWatch::Program::kInteractive));
  SystemClock clock;
  fleet::FleetTable table(clock);
  fleet::FleetSite site(table, {.local = http::IsLocal(options.listen),
                                .listen_host = address.host,
                                .hosts = options.hosts});
  http::ConnectionCounts counts;
  const http::ServerOptions server_options{
      .listen = options.listen,
      .limits = {.body = 4096, .connections = http::ConnectionsByOpenFiles(), .workers = 4}};
  ZEUS_TRY(const auto collector, fleet::Collector::Start(wanted, clock, table));
  ZEUS_TRY(const auto server, http::Server::Start(server_options, site, counts, clock));
  PrintErrorText(fmt::format("watch the fleet in a browser: {}\n", server->url()));
  auto event = SignalWatch::Event::kTime;
  while (event != SignalWatch::Event::kStop)
    event = signals->WaitUntil(clock.Now() + kLongestPause, clock);
  return 0;
}

}  // namespace zeus::cli
