// Partitioning, and functions that a simulated GPU does not support. Every answer is one that real
// parts give.
#include "apps/nvml_simulator/board.h"
#include "apps/nvml_simulator/library.h"

using namespace zeus;
using namespace zeus::nvml_simulator;

namespace {

Return Refuse(Device device, std::initializer_list<const void*> arguments) {
  return Library::Instance().Read(device, arguments,
                                  [](const GpuCall&) { return nvml::kNotSupported; });
}

}  // namespace

NVML_FUNCTION nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  return Library::Instance().Read(device, {current, pending}, [&](const GpuCall& gpu) -> Return {
    const bool enabled = gpu.core.fault(sim::FaultKind::kMigEnabled).has_value();
    if (FindBoard(gpu.core.model()).mig_instances == 0 && !enabled) return nvml::kNotSupported;
    *current = enabled ? 1 : 0;
    *pending = *current;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  return Library::Instance().Read(device, {count}, [&](const GpuCall& gpu) {
    *count = FindBoard(gpu.core.model()).mig_instances;
    return nvml::kSuccess;
  });
}

// The GPU may be partitioned, but no instance was ever created.
NVML_FUNCTION nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned /*index*/, Device* mig) {
  return Library::Instance().Read(device, {mig}, [&](const GpuCall& gpu) -> Return {
    return gpu.core.fault(sim::FaultKind::kMigEnabled) ? nvml::kNotFound : nvml::kNotSupported;
  });
}

NVML_FUNCTION nvmlDeviceIsMigDeviceHandle(Device device, unsigned* is_mig) {
  return Library::Instance().Read(device, {is_mig}, [&](const GpuCall&) {
    *is_mig = 0;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device mig, Device* device) {
  return Library::Instance().Read(mig, {device},
                                  [](const GpuCall&) { return nvml::kInvalidArgument; });
}

NVML_FUNCTION nvmlDeviceGetGpuInstanceId(Device device, unsigned* id) {
  return Refuse(device, {id});
}

NVML_FUNCTION nvmlDeviceGetComputeInstanceId(Device device, unsigned* id) {
  return Refuse(device, {id});
}

// NVML's signature. NOLINTNEXTLINE(readability-function-size)
NVML_FUNCTION nvmlDeviceGetSamples(Device device, int /*type*/, unsigned long long /*last_seen*/,
                                   int* value_type, unsigned* count,
                                   nvml::DriverSample* /*samples*/) {
  return Refuse(device, {value_type, count});
}
