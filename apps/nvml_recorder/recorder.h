#pragma once

#include <cstdint>

#include "zeus/recording/arguments.h"

namespace zeus::nvml_recorder {

// Calls the driver's function of this number with these registers, writes the call and its answer
// down, and returns what the driver returned. Thread-safe.
std::uintptr_t Forward(std::uint16_t function, const recording::Registers& registers);

}  // namespace zeus::nvml_recorder
