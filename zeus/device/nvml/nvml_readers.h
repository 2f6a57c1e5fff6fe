#pragma once

#include <string>

#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/device/nvml/nvml_sensor.h"

// The ways to a value, one function per NVML call, in our units. Combined by Sensor.
namespace zeus::nvml {

// Reads the identity of the device. The UUID is required; fields that an old driver cannot report
// stay empty.
Result<GpuIdentity> ReadIdentity(const Target& target);

// Returns a UUID that begins with "GPU-" or "MIG-".
Result<std::string> ReadUuid(const Target& target);

Return ReadTemperatureV(const Target& target, Celsius* temperature);
Return ReadTemperature(const Target& target, Celsius* temperature);
Return ReadUtilization(const Target& target, Utilization* utilization);
Return ReadMemoryV2(const Target& target, MemoryUse* memory);
Return ReadMemory(const Target& target, MemoryUse* memory);
Return ReadGraphicsClock(const Target& target, Hertz* clock);
Return ReadMemoryClock(const Target& target, Hertz* clock);
Return ReadThrottleReasons(const Target& target, ThrottleReasons* reasons);

// Whether the board is divided into instances now. A board or driver that cannot say is not.
bool InMigMode(const Target& target);

// The range of power limits that the board allows, in milliwatts as in NVML.
struct LimitBounds {
  unsigned min;
  unsigned max;
  unsigned default_limit;
};
Return ReadGpuBounds(const Target& target, LimitBounds* bounds);
Return ReadConstraints(const Target& target, LimitBounds* bounds);
Return ReadModuleBounds(const Target& target, LimitBounds* bounds);

}  // namespace zeus::nvml
