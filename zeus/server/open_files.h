#pragma once

#include <cstddef>
#include <cstdint>

namespace zeus::server {

// How many connections a server with so many open files (ulimit -n) may have: all but those that
// databases, logs, certificates and listeners need. At least 16, at most 10000.
std::size_t ConnectionsWithin(std::uint64_t open_files);

// By the limit of this process.
std::size_t ConnectionsByOpenFiles();

}  // namespace zeus::server
