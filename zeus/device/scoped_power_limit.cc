#include "zeus/device/scoped_power_limit.h"

#include <utility>

namespace zeus {

Result<ScopedPowerLimit> ScopedPowerLimit::Set(Gpu& gpu, Watts limit) {
  ZEUS_TRY(auto knob, DeviceKnob::Of(KnobKind::kGpuPowerLimit, gpu));
  ZEUS_RETURN_IF_ERROR(knob->Set(limit));
  return ScopedPowerLimit(std::move(knob));
}

}  // namespace zeus
