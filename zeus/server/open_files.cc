#include "zeus/server/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace zeus::server {
namespace {

// Files of databases (one connection for each worker), logs, certificates, listeners.
constexpr std::uint64_t kOtherFiles = 128;
constexpr std::uint64_t kFewest = 16;
constexpr std::uint64_t kMost = 10'000;
constexpr std::uint64_t kUsualLimit = 1024;

}  // namespace

std::size_t ConnectionsWithin(std::uint64_t open_files) {
  const std::uint64_t left = open_files > kOtherFiles ? open_files - kOtherFiles : 0;
  return std::clamp(left, kFewest, kMost);
}

std::size_t ConnectionsByOpenFiles() {
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return ConnectionsWithin(kUsualLimit);
  return ConnectionsWithin(limit.rlim_cur);
}

}  // namespace zeus::server
