#pragma once

#include <filesystem>

#include "zeus/base/testing/places.h"

namespace zeus::replay {

// The traces of the Zeus paper, which do not ship: where the environment variable ZEUS_TRACE_DIR
// says, else beside the repository.
inline std::filesystem::path TraceDirectory() {
  return zeus::testing::RecordedData("ZEUS_TRACE_DIR", "nsdi23");
}

}  // namespace zeus::replay
