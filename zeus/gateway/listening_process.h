#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace zeus::gateway {

// The processes of this machine that listen on this TCP port, and all their descendants: a server
// may leave the work on GPUs to its children. Sockets of other users' processes can only be seen by
// root; empty when there is none to be seen. `procfs` is a parameter for tests.
std::vector<int> ListeningProcesses(std::uint16_t port,
                                    const std::filesystem::path& procfs = "/proc");

}  // namespace zeus::gateway
