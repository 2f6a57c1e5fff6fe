#pragma once

#include <cstdlib>
#include <filesystem>

namespace zeus::pipeline {

// Pipelines with their published or exactly known frontiers, which do not ship: where the
// environment variable ZEUS_PIPELINE_DIR says, else beside the repository. Holds instances/*.json
// and frontiers/*.csv.
inline std::filesystem::path InstanceDirectory() {
  if (const char* const chosen = std::getenv("ZEUS_PIPELINE_DIR")) return chosen;
  return std::filesystem::path(ZEUS_SOURCE_DIRECTORY) / ".." / "shared/data/pipeline";
}

}  // namespace zeus::pipeline
