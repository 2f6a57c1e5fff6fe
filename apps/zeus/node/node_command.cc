#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "apps/zeus/commands.h"
#include "apps/zeus/node/connect.h"
#include "apps/zeus/node/node_text.h"
#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/client/node/open_node.h"

namespace zeus::cli {
namespace {

using client::NodeDaemonClient;

struct NodeOptions {
  DaemonOptions daemon{};
  bool json = false;
  bool ended = false;  // Show leases that have ended, too.
};

}  // namespace

void AddSocketOption(Verb verb, DaemonOptions& options) {
  verb.AddOption("--socket", options.socket,
                 "The daemon's socket; otherwise ZEUSD_SOCK_PATH, ZEUSD_HOST_PORT or "
                 "/run/zeusd/zeusd.sock");
}

Result<std::unique_ptr<NodeDaemonClient>> Connect(const DaemonOptions& options, Clock& clock) {
  client::DaemonAddress address = client::AddressOfSocket(options.socket);
  if (options.socket.empty()) {
    ZEUS_TRY(address, client::FindDaemon());
  }
  ZEUS_TRY(auto client, NodeDaemonClient::Create(address, clock));
  if (const Status answers = client->CheckAnswers(); !answers.ok())
    return answers.error().While(
        fmt::format("no node daemon answers at {} (systemctl start zeusd)", address.url));
  return client;
}

namespace {

Result<int> ShowNode(const NodeOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto client, Connect(options.daemon, clock));
  ZEUS_TRY(const Json identity, client->WhoAmI());
  ZEUS_TRY(const client::NodeView node, client->Node());
  // A user without the right to read still sees what there is.
  const auto readings = client->Readings();
  PrintText(ToText(node, readings.ok() ? readings.value() : std::vector<client::ReadingView>(),
                   identity));
  return 0;
}

Result<int> ListLeases(const NodeOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto client, Connect(options.daemon, clock));
  ZEUS_TRY(const auto leases, client->Leases(options.ended ? NodeDaemonClient::Ended::kInclude
                                                           : NodeDaemonClient::Ended::kLeaveOut));
  if (options.json) {
    Json list = Json::array();
    for (const wire::LeaseView& lease : leases) list.push_back(wire::ToJson(lease));
    PrintJson({{"leases", std::move(list)}});
  } else {
    PrintText(ToText(leases));
  }
  return 0;
}

Result<int> EndLease(const NodeOptions& options, const std::string& lease) {
  SystemClock clock;
  ZEUS_TRY(const auto client, Connect(options.daemon, clock));
  ZEUS_RETURN_IF_ERROR(client->Lease(lease));  // An id that is wrong is an error for people.
  ZEUS_RETURN_IF_ERROR(client->EndLease(lease));
  PrintText(fmt::format("{} has ended; its knobs are back.\n", lease));
  return 0;
}

}  // namespace

void AddNodeCommand(Verb app, Action& action) {
  auto options = std::make_shared<NodeOptions>();
  const Verb verb =
      app.AddVerb("node", "Show the devices behind the node daemon, and what you may do with them");
  AddSocketOption(verb, options->daemon);
  verb.OnChosen([&action, options] { action = [options] { return ShowNode(*options); }; });
}

void AddLeaseCommand(Verb app, Action& action) {
  const Verb verb = app.AddVerb("lease", "Show and end the leases of knobs at the node daemon");
  verb.RequireVerb();
  auto options = std::make_shared<NodeOptions>();
  const Verb list = verb.AddVerb("list", "Show your leases; those of everybody as administrator");
  AddSocketOption(list, options->daemon);
  list.AddFlag("--json", options->json, "Print JSON");
  list.AddFlag("--ended", options->ended, "Also those that ended in the last ten minutes");
  list.OnChosen([&action, options] { action = [options] { return ListLeases(*options); }; });
  auto lease = std::make_shared<std::string>();
  const Verb end = verb.AddVerb("end", "End a lease, and wait until its knobs are back");
  end.AddOption("lease", *lease, "Its id, as zeus lease list shows it").Required();
  AddSocketOption(end, options->daemon);
  end.OnChosen([&action, options, lease] {
    action = [options, lease] { return EndLease(*options, *lease); };
  });
}

}  // namespace zeus::cli
