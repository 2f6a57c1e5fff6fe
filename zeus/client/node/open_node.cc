#include "zeus/client/node/open_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "zeus/client/node/daemon_devices.h"
#include "zeus/device/visible_devices.h"
#include "zeus/http/url.h"

namespace zeus::client {
namespace {

constexpr const char* kSocketVariable = "ZEUSD_SOCK_PATH";
constexpr const char* kHostVariable = "ZEUSD_HOST_PORT";
constexpr const char* kTokenVariable = "ZEUSD_TOKEN";

std::optional<std::string> NonEmpty(const Environment& environment, const char* variable) {
  auto value = environment(variable);
  return value && !value->empty() ? value : std::nullopt;
}

// The daemon that the environment names.
Result<std::optional<NodeWay>> NamedDaemon(const Environment& environment) {
  NodeWay way{.through_daemon = true};
  if (const auto socket = NonEmpty(environment, kSocketVariable)) {
    way.address = AddressOfSocket(*socket);
    way.reason = fmt::format("{} names it", kSocketVariable);
  } else if (const auto host = NonEmpty(environment, kHostVariable)) {
    way.address.url = host->find("://") == std::string::npos ? "http://" + *host : *host;
    if (auto url = http::ParseUrl(way.address.url); !url.ok())
      return std::move(url).error().While(kHostVariable);
    way.reason = fmt::format("{} names it", kHostVariable);
  } else {
    return std::optional<NodeWay>();
  }
  way.address.token = NonEmpty(environment, kTokenVariable).value_or("");
  return std::optional<NodeWay>(std::move(way));
}

bool IsSimulated(const Environment& environment) {
  return NonEmpty(environment, "ZEUS_SIM") || NonEmpty(environment, "ZEUS_NVML_LIBRARY");
}

// The GPUs of a vendor that a variable selects, in its order.
Status AddVisible(Vendor vendor, const char* variable, const Environment& environment,
                  const std::vector<NodeGpu>& all, std::vector<NodeGpu>& visible) {
  std::vector<const NodeGpu*> gpus;
  std::vector<SelectableBoard> boards;
  for (const NodeGpu& gpu : all) {
    if (gpu.identity.vendor != vendor) continue;
    gpus.push_back(&gpu);
    boards.push_back({.uuid = gpu.identity.uuid, .partitions = {}, .identified = true});
  }
  if (gpus.empty()) return Ok();
  ZEUS_TRY(const std::vector<VisibleBoard> selected,
           SelectVisibleBoards(variable, environment(variable), boards));
  for (const VisibleBoard& board : selected) visible.push_back(*gpus[board.board]);
  return Ok();
}

Result<std::vector<NodeGpu>> VisibleGpus(const std::vector<NodeGpu>& all,
                                         const Environment& environment) {
  std::vector<NodeGpu> visible;
  ZEUS_RETURN_IF_ERROR(
      AddVisible(Vendor::kNvidia, "CUDA_VISIBLE_DEVICES", environment, all, visible));
  ZEUS_RETURN_IF_ERROR(AddVisible(Vendor::kAmd, "HIP_VISIBLE_DEVICES", environment, all, visible));
  std::ranges::copy_if(all, std::back_inserter(visible),
                       [](const NodeGpu& gpu) { return gpu.identity.vendor == Vendor::kIntel; });
  return visible;
}

}  // namespace

Result<NodeWay> ChooseWay(Clock& clock, const OpenNodeOptions& options) {
  ZEUS_TRY(std::optional<NodeWay> named, NamedDaemon(options.environment));
  if (named) return *std::move(named);
  if (IsSimulated(options.environment))
    return NodeWay{.through_daemon = false, .reason = "the GPUs are simulated"};
  if (options.privilege == Privilege::kRoot)
    return NodeWay{.through_daemon = false, .reason = "this process is root"};
  NodeWay way{.through_daemon = true,
              .address = AddressOfSocket(options.default_socket),
              .reason = "this process is not root, and the daemon of this machine answers"};
  ZEUS_TRY(const auto client, NodeDaemonClient::Create(way.address, clock));
  if (client->CheckAnswers().ok()) return way;
  return NodeWay{.through_daemon = false,
                 .reason = "no daemon answers at " + options.default_socket};
}

Result<DaemonAddress> FindDaemon(const OpenNodeOptions& options) {
  ZEUS_TRY(std::optional<NodeWay> named, NamedDaemon(options.environment));
  if (named) return std::move(named->address);
  DaemonAddress address = AddressOfSocket(options.default_socket);
  address.token = NonEmpty(options.environment, kTokenVariable).value_or("");
  return address;
}

Result<Node> NodeOfDaemon(Clock& clock, const DaemonAddress& address,
                          const Environment& environment) {
  ZEUS_TRY(auto client, NodeDaemonClient::Create(address, clock));
  ZEUS_TRY(const NodeView view, client->Node());
  auto connection = std::make_shared<DaemonConnection>(std::move(client), clock);
  Node node;
  if (!address.board_socket.empty()) {
    auto board = BoardReader::Connect(address.board_socket);
    if (board.ok()) {
      connection->board = std::move(board).value();
    } else {
      node.absent.push_back({.what = "readings in shared memory",
                             .reason = board.error().message,
                             .fix = "ask the daemon for each reading, which costs more"});
    }
  }
  if (!view.pod_trouble.empty())
    node.absent.push_back({.what = "energy by pod",
                           .reason = view.pod_trouble,
                           .fix = "give the daemon the kubelet's folder "
                                  "/var/lib/kubelet/pod-resources (docs/kubernetes.md)"});
  ZEUS_TRY(const std::vector<NodeGpu> visible, VisibleGpus(view.gpus, environment));
  for (const NodeGpu& gpu : visible)
    node.gpus.push_back(
        std::make_unique<DaemonGpu>(connection, gpu, fmt::format("gpu:{}", node.gpus.size())));
  for (const NodeCpu& cpu : view.cpus)
    node.cpus.push_back(std::make_unique<DaemonCpu>(connection, cpu));
  return node;
}

Result<Node> OpenNode(const Surroundings& surroundings, const OpenNodeOptions& options) {
  ZEUS_TRY(const NodeWay way, ChooseWay(surroundings.clock, options));
  if (!way.through_daemon) return Discover(surroundings);
  auto node = NodeOfDaemon(surroundings.clock, way.address, options.environment);
  if (!node.ok())
    return std::move(node).error().While(
        fmt::format("open the node daemon at {} ({})", way.address.url, way.reason));
  return node;
}

Result<Node> OpenNode(const Surroundings& surroundings) {
  return OpenNode(surroundings, {.environment = surroundings.environment});
}

Result<Node> OpenThisNode(Clock& clock) { return OpenNode(RealSurroundings(clock)); }

}  // namespace zeus::client
