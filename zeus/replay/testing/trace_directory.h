#pragma once

#include <filesystem>

#include "zeus/base/testing/places.h"

namespace zeus::replay {

// Returns the folder of the Zeus paper's traces, which are not part of the repository: the
// environment variable ZEUS_TRACE_DIR names it, or it lies beside the repository.
inline std::filesystem::path TraceDirectory() {
  return zeus::testing::RecordedData("ZEUS_TRACE_DIR", "nsdi23");
}

}  // namespace zeus::replay
