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
  if (gpu_ == nullptr) return;
  const auto restored = gpu_->SetPowerLimit(previous_);
  if (!restored.ok())
    log::Failure("could not restore the power limit of {}: {}", gpu_->name(),
                 restored.error().message);
}

}  // namespace zeus
