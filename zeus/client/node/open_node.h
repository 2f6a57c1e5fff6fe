#pragma once

#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/result.h"
#include "zeus/client/node/node_daemon_client.h"
#include "zeus/device/node.h"
#include "zeus/device/privilege.h"

namespace zeus::client {

// How a program reaches the devices of this machine.
struct NodeWay {
  bool through_daemon = false;
  DaemonAddress address{};
  std::string reason{};  // "ZEUSD_SOCK_PATH names it", for people.
};

struct OpenNodeOptions {
  Environment environment = ProcessEnvironment();
  std::string default_socket = "/run/zeusd/zeusd.sock";
  Privilege privilege = CurrentPrivilege();
};

// A daemon that the environment names (ZEUSD_SOCK_PATH, ZEUSD_HOST_PORT, with ZEUSD_TOKEN) is used;
// else this process opens the devices itself where it may set them, or where they are simulated;
// else the daemon of this machine, if it answers. kInvalidArgument for a malformed variable.
Result<NodeWay> ChooseWay(Clock& clock, const OpenNodeOptions& options = {});

// The daemon's address alone, whether or not this process could do without it: for commands that
// are about the daemon.
Result<DaemonAddress> FindDaemon(const OpenNodeOptions& options = {});

// The devices of this machine by the chosen way, as this process may see them: CUDA_VISIBLE_DEVICES
// and its relatives choose and number the daemon's GPUs, too. Stands for Discover(), and looks
// where `surroundings` say when the devices are opened directly; their clock must outlive the node.
// kUnavailable when a daemon that is named does not answer.
Result<Node> OpenNode(const Surroundings& surroundings, const OpenNodeOptions& options);
Result<Node> OpenNode(const Surroundings& surroundings);
// The same for this process, in the shape of NodeMonitorOptions::find_devices.
Result<Node> OpenThisNode(Clock& clock);

// The devices behind a daemon.
Result<Node> NodeOfDaemon(Clock& clock, const DaemonAddress& address,
                          const Environment& environment);

}  // namespace zeus::client
