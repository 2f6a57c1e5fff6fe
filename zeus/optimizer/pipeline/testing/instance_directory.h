#pragma once

#include <filesystem>

#include "zeus/base/testing/places.h"

namespace zeus::pipeline {

// Pipelines with their published or exactly known frontiers, which do not ship: where the
// environment variable ZEUS_PIPELINE_DIR says, else beside the repository. Holds instances/*.json
// and frontiers/*.csv.
inline std::filesystem::path InstanceDirectory() {
  return zeus::testing::RecordedData("ZEUS_PIPELINE_DIR", "pipeline");
}

}  // namespace zeus::pipeline
