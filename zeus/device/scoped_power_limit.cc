#include "zeus/device/scoped_power_limit.h"

#include <utility>

namespace zeus {

Result<ScopedPowerLimit> ScopedPowerLimit::Set(Gpu& gpu, Watts limit, Ceiling ceiling) {
  ZEUS_TRY(auto knob, GuardedKnob::Of(KnobKind::kGpuPowerLimit, gpu, ceiling));
  ZEUS_RETURN_IF_ERROR(knob->Set(limit));
  return ScopedPowerLimit(std::move(knob));
}

}  // namespace zeus
