#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_api.h"

namespace zeus::nvml {

// Loads NVML and resolves its functions. Without a path: libnvidia-ml.so.1 (never the unversioned
// name, which is a stub on machines with the CUDA toolkit), then the place where WSL keeps it.
//
// Versioned functions are asked for by the newest name first. The older names in nvml_library.cc
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
