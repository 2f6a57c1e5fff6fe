#pragma once

#include <cstdlib>
#include <filesystem>

namespace zeus::replay {

// The traces of the Zeus paper, which do not ship: where the environment variable ZEUS_TRACE_DIR
// says, else beside the repository.
inline std::filesystem::path TraceDirectory() {
  if (const char* const chosen = std::getenv("ZEUS_TRACE_DIR")) return chosen;
  return std::filesystem::path(ZEUS_SOURCE_DIRECTORY) / ".." / "shared/data/nsdi23";
}

}  // namespace zeus::replay
