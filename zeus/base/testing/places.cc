#include "zeus/base/testing/places.h"

#include <cstdlib>

namespace zeus::testing {

std::filesystem::path SourceDirectory() { return ZEUS_SOURCE_DIRECTORY; }

std::filesystem::path BuildDirectory() { return ZEUS_BUILD_DIRECTORY; }

std::filesystem::path RecordedData(const char* variable, std::string_view folder) {
  if (const char* const chosen = std::getenv(variable)) return chosen;
  return SourceDirectory() / ".." / "shared" / "data" / folder;
}

std::filesystem::path SimulatedDriver() {
  return BuildDirectory() / "lib" / "zeus" / "sim" / "libnvidia-ml.so.1";
}

}  // namespace zeus::testing
