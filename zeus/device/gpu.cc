#include "zeus/device/gpu.h"

#include <utility>

namespace zeus {

const char* VendorName(Vendor vendor) {
  switch (vendor) {
    case Vendor::kNvidia:
      return "NVIDIA";
    case Vendor::kAmd:
      return "AMD";
    case Vendor::kIntel:
      return "Intel";
  }
  return "unknown";
}

const char* ClockDomainName(ClockDomain domain) {
  return domain == ClockDomain::kGraphics ? "graphics" : "memory";
}

GpuReading Gpu::Read() {
  const auto limit = CurrentPowerLimit();
  const auto part_of_limit = [&](Watts PowerLimit::*part) -> Result<Watts> {
    if (!limit.ok()) return limit.error();
    return limit.value().*part;
  };
  return {.energy = Energy(),
          .instant_power = Power(PowerKind::kInstant),
          .average_power = Power(PowerKind::kOneSecondAverage),
          .memory_power = Power(PowerKind::kMemory),
          .requested_limit = part_of_limit(&PowerLimit::requested),
          .enforced_limit = part_of_limit(&PowerLimit::enforced),
          .temperature = Temperature(),
          .utilization = CurrentUtilization(),
          .memory = CurrentMemoryUse(),
          .graphics_clock = CurrentClock(ClockDomain::kGraphics),
          .memory_clock = CurrentClock(ClockDomain::kMemory),
          .throttle = CurrentThrottleReasons()};
}

Result<Watts> Gpu::Power() {
  auto instant = Power(PowerKind::kInstant);
  if (instant.ok() || instant.error().code != ErrorCode::kNotSupported) return instant;
  auto average = Power(PowerKind::kOneSecondAverage);
  return average.ok() ? std::move(average) : std::move(instant);
}

}  // namespace zeus
