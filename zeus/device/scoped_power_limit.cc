#include "zeus/device/scoped_power_limit.h"

#include <utility>

#include "zeus/base/log.h"

namespace zeus {

Result<ScopedPowerLimit> ScopedPowerLimit::Set(Gpu& gpu, Watts limit) {
  ZEUS_TRY(const PowerLimit previous, gpu.CurrentPowerLimit());
  ZEUS_RETURN_IF_ERROR(gpu.SetPowerLimit(limit));
  return ScopedPowerLimit(gpu, previous.requested);
}

ScopedPowerLimit::ScopedPowerLimit(ScopedPowerLimit&& other) noexcept
    : gpu_(std::exchange(other.gpu_, nullptr)), previous_(other.previous_) {}

ScopedPowerLimit::~ScopedPowerLimit() {
  if (const Status restored = Restore(); !restored.ok())
    log::Failure("{}", restored.error().message);
}

Status ScopedPowerLimit::Restore() {
  if (gpu_ == nullptr) return Ok();
  Gpu& gpu = *std::exchange(gpu_, nullptr);
  const auto restored = gpu.SetPowerLimit(previous_);
  if (restored.ok()) return Ok();
  return restored.error().While("restore the power limit of " + gpu.name());
}

}  // namespace zeus
