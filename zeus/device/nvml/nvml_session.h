#pragma once

#include <atomic>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
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
// again at its first Enter(). Calls take no locks, because a lock that another thread of the parent
// held at the fork would stay locked for ever in the child. Thread-safe.
class NvmlSession {
 public:
  // NVML is not closed while one of these lives. A thread has one at a time: a second one would
  // wait for a Close() that waits for the first.
  class Use {
   public:
    Use() = default;
    explicit Use(NvmlSession& session) : session_(&session) {}
    Use(Use&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(session_, other.session_);
      return *this;
    }
    ~Use() {
      if (session_ != nullptr) session_->EndUse();
    }

   private:
    NvmlSession* session_ = nullptr;
  };

  // The error is NVML's reason: no driver loaded, versions that do not match, no permission.
  static Result<std::shared_ptr<NvmlSession>> Open(const NvmlApi& api);

  ~NvmlSession();
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  const NvmlApi& api() const { return api_; }

  // Makes sure that NVML is initialised in this process. Cheap when it is. The caller has a Use.
  Status Enter();

  // Waits while NVML is being closed.
  Use Begin();

  // Closes NVML, and with it all devices that it has open in this process: it has no call for one
  // alone. It is initialised again by the next Enter(), which opens none. Handles from before are
  // void. kUnavailable, and nothing is closed, when a call does not return within `patience`.
  Status Close(Seconds patience);
  // How often NVML was closed: handles are good for one number.
  unsigned closings() const { return closings_; }

 private:
  static constexpr unsigned kNowhere = std::numeric_limits<unsigned>::max();

  explicit NvmlSession(const NvmlApi& api) : api_(api) {}
  void EndUse();
  bool IsClosing() const { return closing_in_ == ForkGeneration(); }

  const NvmlApi api_;
  // Fork generation of the process in which NVML is initialised.
  std::atomic<unsigned> generation_{kNowhere};
  // Likewise, of the process that waits to close it. A child does not inherit the wait.
  std::atomic<unsigned> closing_in_{kNowhere};
  std::atomic<unsigned> closings_{0};
  std::atomic<int> uses_{0};
  std::mutex one_closes_;
  std::mutex mutex_;                 // Only taken where NVML is being closed.
  std::condition_variable changed_;  // closing_in_ or uses_
};

}  // namespace zeus::nvml
