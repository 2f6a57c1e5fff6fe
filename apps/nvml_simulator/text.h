#pragma once

#include <string_view>

#include "zeus/device/nvml/nvml_abi.h"

namespace zeus::nvml_simulator {

// Copies text by NVML's rule: the caller's buffer must hold the text and its terminator.
inline nvml::Return CopyText(std::string_view text, char* buffer, unsigned length) {
  if (length < text.size() + 1) return nvml::kInsufficientSize;
  text.copy(buffer, text.size());
  buffer[text.size()] = '\0';
  return nvml::kSuccess;
}

}  // namespace zeus::nvml_simulator
