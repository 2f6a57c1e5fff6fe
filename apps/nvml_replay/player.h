#pragma once

#include <cstdint>

#include "zeus/recording/arguments.h"

namespace zeus::nvml_replay {

// Answers the function of this number from the recording that is replayed. Thread-safe.
std::uintptr_t Answer(std::uint16_t function, const recording::Registers& registers);

}  // namespace zeus::nvml_replay
