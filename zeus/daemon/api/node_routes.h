#pragma once

#include <functional>
#include <string>
#include <vector>

#include "zeus/daemon/api/call.h"
#include "zeus/daemon/api/daemon.h"

// The requests under /v1 and their relatives: docs/daemon.md. Each function adds a family of
// routes. The daemon must outlive the table.
namespace zeus::daemon {

// /v1/node, whoami, readings, energy, stream, audit.
void AddNodeRoutes(Daemon& daemon, RouteTable& table);
// /v1/leases and their parts, /v1/budget.
void AddLeaseRoutes(Daemon& daemon, RouteTable& table);
// /v1/history, knobs.
void AddWatchRoutes(Daemon& daemon, RouteTable& table);
// /v1/jobs, maintenance, restore.
void AddJobRoutes(Daemon& daemon, RouteTable& table);
void AddOperatorRoutes(Daemon& daemon, RouteTable& table);

// The address of a device in a path or a query: its id, as /v1/node tells it. kNotFound says where
// to look.
Result<const NodeDevice*> FindDevice(const Daemon& daemon, const std::string& id);
// The devices that the parameter `devices` names, or all that the caller may read.
Result<std::vector<const NodeDevice*>> ReadableDevices(const Daemon& daemon, const Call& call);

}  // namespace zeus::daemon
