#pragma once

#include <memory>
#include <set>
#include <string>

#include "zeus/daemon/api/call.h"
#include "zeus/daemon/api/daemon.h"

// The requests of the reference's daemon, with its parameters, statuses and bodies, so that its
// clients work unchanged: docs/daemon.md lists the few differences. GPUs are numbered in PCI order
// among all GPUs of the machine.
namespace zeus::daemon {

struct ReferenceOptions {
  std::set<ApiGroup> groups{ApiGroup::kGpuControl, ApiGroup::kGpuRead, ApiGroup::kCpuRead};
  bool tokens = false;  // Callers over TCP need one.
};
// "gpu-control", …
std::string_view Name(ApiGroup group);
Result<ApiGroup> ParseApiGroup(std::string_view name);

// /discover, /time, /auth/whoami. The daemon must outlive the table.
void AddReferenceRoutes(Daemon& daemon, const ReferenceOptions& options, RouteTable& table);
// The parts in reference_controls.cc and reference_reads.cc.
void AddReferenceControls(Daemon& daemon, RouteTable& table);
void AddReferenceReads(Daemon& daemon, RouteTable& table);

// The devices that `gpu_ids` or `cpu_ids` names, sorted and without repetition; all without the
// parameter. kInvalidArgument for numbers that do not exist.
Result<std::vector<const NodeDevice*>> NumberedDevices(const Call& call, const std::string& name,
                                                       const std::vector<NodeDevice>& devices);

// Collects what each device answers: an object by its number, or {"errors": {"0": "…"}} with the
// numerically largest status.
class AnswersByDevice {
 public:
  void Fail(std::size_t index, int status, const std::string& message);
  void Fail(std::size_t index, const Error& error);
  bool failed() const { return status_ != 200; }
  http::Answer Failure() const;

 private:
  int status_ = 200;
  std::map<std::size_t, std::string> errors_{};
};

std::int64_t Milliseconds(WallTime time);

}  // namespace zeus::daemon
