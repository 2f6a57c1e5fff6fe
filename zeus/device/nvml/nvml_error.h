#pragma once

#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_abi.h"
#include "zeus/device/privilege.h"

namespace zeus::nvml {

// NVML's return code as one of ours, with a sentence that says what the user can do. `doing` goes
// in front: "gpu:0: set power limit: the driver refused: needs root (CAP_SYS_ADMIN in
// containers)". Not for kSuccess.
Error NvmlError(Return code, std::string_view doing, Privilege privilege = CurrentPrivilege());

// The same for nvmlInit. `said` is the library's own text for the code, or empty. A library that
// has something better to say than that no driver is loaded is not NVIDIA's, and loading NVIDIA's
// kernel driver would not help: then its text is the reason, without a remedy.
Error InitError(Return code, std::string_view doing, std::string_view said);

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
