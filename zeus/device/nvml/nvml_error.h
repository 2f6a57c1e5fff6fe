#pragma once

#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_abi.h"

namespace zeus::nvml {

// NVML's return code as one of ours, with a sentence that says what the user can do. `doing` goes
// in front: "gpu:0: set power limit: the driver refused: needs root (CAP_SYS_ADMIN) or zeusd".
// Not for kSuccess.
Error NvmlError(Return code, std::string_view doing);

// The two parts of a message of NvmlError().
struct ProblemAndRemedy {
  std::string problem;
  std::string remedy;  // Empty where there is none.
};
ProblemAndRemedy SplitRemedy(const Error& error);

// Whether the device cannot be used any more in this state, as opposed to one call that failed.
bool DeviceIsGone(Return code);

// Whether the driver or the device does not know this call or field and never will.
bool NeverWorks(Return code);

inline Status ToStatus(Return code, std::string_view doing) {
  if (code == kSuccess) return Ok();
  return NvmlError(code, doing);
}

}  // namespace zeus::nvml
