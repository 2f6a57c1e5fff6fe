#pragma once

#include <filesystem>
#include <string_view>

namespace zeus::testing {

// The root of the source tree and of the build tree that this program belongs to. Only places.cc is
// compiled with these paths, so that every checkout can reuse what another one compiled.
std::filesystem::path SourceDirectory();
std::filesystem::path BuildDirectory();

// A folder of recorded data that does not ship: where the environment variable says, else
// `folder` in the data that lies beside the repository.
std::filesystem::path RecordedData(const char* variable, std::string_view folder);

// NVML's C interface over simulated GPUs, as a shared library.
std::filesystem::path SimulatedDriver();

}  // namespace zeus::testing
