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

Result<Watts> Gpu::Power() {
  auto instant = Power(PowerKind::kInstant);
  if (instant.ok() || instant.error().code != ErrorCode::kNotSupported) return instant;
  auto average = Power(PowerKind::kOneSecondAverage);
  return average.ok() ? std::move(average) : std::move(instant);
}

}  // namespace zeus
