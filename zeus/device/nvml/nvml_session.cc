#include "zeus/device/nvml/nvml_session.h"

#include <string_view>

#include "zeus/base/fork.h"
#include "zeus/device/nvml/nvml_error.h"

namespace zeus::nvml {
namespace {

Status Initialise(const NvmlApi& api, std::string_view doing) {
  const Return code = Call(api.init);
  if (code == kSuccess) return Ok();
  const char* const said = api.error_string == nullptr ? nullptr : api.error_string(code);
  return InitError(code, doing, said == nullptr ? "" : said);
}

}  // namespace

Result<std::shared_ptr<NvmlSession>> NvmlSession::Open(const NvmlApi& api) {
  WatchForks();
  ZEUS_RETURN_IF_ERROR(Initialise(api, "initialise NVML"));
  std::shared_ptr<NvmlSession> session(new NvmlSession(api));
  session->generation_ = ForkGeneration();
  return session;
}

NvmlSession::~NvmlSession() {
  // In a child that never used NVML there is nothing to shut down.
  if (generation_ == ForkGeneration()) Call(api_.shutdown);
}

Status NvmlSession::Enter() {
  const unsigned now = ForkGeneration();
  unsigned initialised = generation_.load(std::memory_order_acquire);
  if (initialised == now) return Ok();
  ZEUS_RETURN_IF_ERROR(Initialise(api_, "initialise NVML after a fork"));
  // NVML counts its users: of two threads that got here together, the second gives its count back.
  if (!generation_.compare_exchange_strong(initialised, now)) Call(api_.shutdown);
  return Ok();
}

}  // namespace zeus::nvml
