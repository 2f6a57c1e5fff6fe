#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/device/sim/node_layout.h"
#include "zeus/device/sim/shared_node.h"

namespace zeus::sim {

inline constexpr std::string_view kDefaultNodeName = "default";

// The node that programs of this environment mean: that of ZEUS_SIM_NODE, else "default".
std::string ChosenNodeName();

// The simulated nodes of this machine: one file per node, in shared memory. A node exists from
// the moment its file has a name until the file is removed; no process has to run.
// Thread-safe. `clock` must outlive the nodes opened here.
class NodeDirectory {
 public:
  // `boot_id` tells this boot of the machine from earlier ones: node time is counted on a clock
  // that starts again with every boot.
  NodeDirectory(std::filesystem::path directory, std::string boot_id, Clock& clock);

  // /dev/shm, or ZEUS_SIM_DIR where that is set (kNotFound if it is no directory); the kernel's
  // boot id.
  static Result<NodeDirectory> FromEnvironment(Clock& clock);

  // Starts a node: it appears whole or not at all, also when the starting process dies.
  // kUnavailable when the name is taken.
  Result<SharedNode> Create(std::string_view name, const NodeSpec& spec) const;

  // kNotFound names the nodes that run; kPermissionDenied says who may write.
  Result<SharedNode> Open(std::string_view name, Access access) const;

  // Stops a node, or removes the remains of a damaged or stale one. kUnavailable while another
  // process is stopping it; kPermissionDenied names the user who may.
  Status Remove(std::string_view name) const;

  struct Entry {
    std::string name;
    Status state;  // Why the file cannot be used: damaged, of another version, of an earlier boot.
  };
  // Every file that bears a node's name, in alphabetical order.
  std::vector<Entry> List() const;

  std::filesystem::path NodeFile(std::string_view name) const;

 private:
  Error NameTaken(std::string_view name) const;
  Error NoSuchNode(std::string_view name) const;
  Result<NodeMemory> Map(std::string_view name, Access access) const;
  Result<NodeMemory> MapNode(const FileDescriptor& file, Access access) const;
  Status Unlink(std::string_view name) const;

  std::filesystem::path directory_;
  std::string boot_id_;
  Clock* clock_;
};

}  // namespace zeus::sim
