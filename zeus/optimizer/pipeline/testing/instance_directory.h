#pragma once

#include <filesystem>

#include "zeus/base/testing/places.h"

namespace zeus::pipeline {

// Returns the folder of pipelines with published or exactly known frontiers (instances/*.json and
// frontiers/*.csv), which do not ship with Zeus: ZEUS_PIPELINE_DIR if it is set, else a folder
// beside the repository.
inline std::filesystem::path InstanceDirectory() {
  return zeus::testing::RecordedData("ZEUS_PIPELINE_DIR", "pipeline");
}

}  // namespace zeus::pipeline
