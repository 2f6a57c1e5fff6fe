#include "zeus/wire/node/lease.h"

namespace zeus::wire {

std::string_view Name(LeaseKnob knob) {
  switch (knob) {
    case LeaseKnob::kGpuPowerLimit:
      return "gpu_power_limit";
    case LeaseKnob::kGraphicsClock:
      return "graphics_clock";
    case LeaseKnob::kMemoryClock:
      return "memory_clock";
    case LeaseKnob::kCpuPowerLimit:
      return "cpu_power_limit";
    case LeaseKnob::kPersistence:
      return "persistence";
  }
  return "unknown";
}

}  // namespace zeus::wire
