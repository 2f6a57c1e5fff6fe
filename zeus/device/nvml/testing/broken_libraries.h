#pragma once

#include <string>

#include "zeus/base/testing/places.h"

namespace zeus::nvml::testing {

// A library of a broken installation: it lacks functions that every NVML has.
inline std::string HalfNvml() {
  return zeus::testing::BuildDirectory() / "tests" / "libzeus_half_nvml.so";
}

// A complete library that finds no GPU.
inline std::string BareNvml() {
  return zeus::testing::BuildDirectory() / "tests" / "libzeus_bare_nvml.so";
}

}  // namespace zeus::nvml::testing
