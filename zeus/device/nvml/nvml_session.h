#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_abi.h"
#include "zeus/device/nvml/nvml_api.h"
#include "zeus/device/privilege.h"

namespace zeus::nvml {

// NVML's return code as one of ours, with a sentence that says what the user can do. `doing` goes
// in front: "gpu:0: set power limit: the driver refused: needs root (CAP_SYS_ADMIN in
// containers), or zeusd: …". Not for kSuccess.
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

// Loads NVML and resolves its functions. Without a path: libnvidia-ml.so.1 (never the unversioned
// name, which is a stub on machines with the CUDA toolkit), then the place where WSL keeps it.
//
// Versioned functions are asked for by the newest name first. The older names in nvml_session.cc
// have the same layout in all that we read.
//
// kNotFound when there is no such file, kInvalidArgument when it is not a library or lacks
// functions without which nothing works (the message names them). The library stays loaded until
// the process ends: a driver library may have threads and exit handlers of its own.
Result<NvmlApi> LoadNvml(const std::optional<std::string>& path = std::nullopt);

// Keeps NVML initialised as long as the session lives. All holders of handles share one session;
// NVML is shut down with the last of them.
//
// NVML does not survive fork(): every call of the child fails. The child therefore initialises
// again at its first Enter(). There are no locks, because a lock that another thread of the parent
// held at the fork would stay locked for ever in the child. Thread-safe.
class NvmlSession {
 public:
  // The error is NVML's reason: no driver loaded, versions that do not match, no permission.
  static Result<std::shared_ptr<NvmlSession>> Open(const NvmlApi& api);

  ~NvmlSession();
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  const NvmlApi& api() const { return api_; }

  // Makes sure that NVML is initialised in this process. Cheap when it is.
  Status Enter();

 private:
  explicit NvmlSession(const NvmlApi& api) : api_(api) {}

  const NvmlApi api_;
  std::atomic<unsigned> generation_{
      0};  // Fork generation of the process in which NVML is initialised.
};

}  // namespace zeus::nvml
