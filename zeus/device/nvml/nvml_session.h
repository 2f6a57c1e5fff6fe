#pragma once

#include <atomic>
#include <memory>

#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_api.h"

namespace zeus::nvml {

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
