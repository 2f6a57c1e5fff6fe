// NVML's functions for power, energy and power limits.
#include "apps/nvml_simulator/convert.h"
#include "apps/nvml_simulator/export.h"
#include "apps/nvml_simulator/library.h"

using namespace zeus;
using namespace zeus::nvml_simulator;

namespace {

template <class Select>
Return ReadLimit(Device device, unsigned* limit, Select&& select) {
  return Library::Instance().Read(device, {limit}, [&](const GpuCall& gpu) {
    *limit = ToMilliwatts(select(gpu.core.power_limit()));
    return nvml::kSuccess;
  });
}

}  // namespace

NVML_FUNCTION nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
  return Library::Instance().Read(device, {milliwatts}, [&](const GpuCall& gpu) -> Return {
    // As NVML documents it, this is the average over 1 s on parts that have one, and over a short
    // window on others.
    const bool average = gpu.core.model().sensors.has_one_second_average;
    return Answer(gpu.Power(average ? PowerKind::kOneSecondAverage : PowerKind::kInstant),
                  milliwatts, ToMilliwatts);
  });
}

NVML_FUNCTION nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* millijoules) {
  return Library::Instance().Read(device, {millijoules}, [&](const GpuCall& gpu) -> Return {
    return Answer(gpu.core.counter_millijoules(), millijoules, [](auto value) { return value; });
  });
}

NVML_FUNCTION nvmlDeviceGetPowerManagementMode(Device device, int* mode) {
  return Library::Instance().Read(device, {mode}, [&](const GpuCall&) {
    *mode = 1;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetPowerManagementLimit(Device device, unsigned* limit) {
  return ReadLimit(device, limit, [](const PowerLimit& now) { return now.requested; });
}

NVML_FUNCTION nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned* limit) {
  return ReadLimit(device, limit, [](const PowerLimit& now) { return now.default_limit; });
}

NVML_FUNCTION nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* limit) {
  return ReadLimit(device, limit, [](const PowerLimit& now) { return now.enforced; });
}

NVML_FUNCTION nvmlDeviceGetPowerManagementLimitConstraints(Device device, unsigned* min,
                                                           unsigned* max) {
  return Library::Instance().Read(device, {min, max}, [&](const GpuCall& gpu) {
    const PowerRange range = gpu.core.power_limit().range;
    *min = ToMilliwatts(range.min);
    *max = ToMilliwatts(range.max);
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceSetPowerManagementLimit(Device device, unsigned milliwatts) {
  return Library::Instance().Write(
      device, [&](sim::GpuCore& core) { return core.SetPowerLimit(Watts::FromMilli(milliwatts)); });
}

NVML_FUNCTION nvmlDeviceSetPowerManagementLimit_v2(Device device, nvml::PowerValueV2* value) {
  const auto nothing = [](const sim::SharedNode&) { return nvml::kSuccess; };
  if (const Return failure = Library::Instance().OnNode({value}, nothing);
      failure != nvml::kSuccess)
    return failure;
  if (value->version != nvml::StructVersion<nvml::PowerValueV2>(2))
    return nvml::kArgumentVersionMismatch;
  if (value->power_scope != nvml::kScopeGpu) return nvml::kNotSupported;
  return nvmlDeviceSetPowerManagementLimit(device, value->power_value_milliwatts);
}

NVML_FUNCTION nvmlDeviceGetPersistenceMode(Device device, int* mode) {
  return Library::Instance().Read(device, {mode}, [&](const GpuCall& gpu) {
    *mode = gpu.core.persistence() == Persistence::kOn ? 1 : 0;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceSetPersistenceMode(Device device, int mode) {
  if (mode != 0 && mode != 1) return nvml::kInvalidArgument;
  return Library::Instance().Write(device, [&](sim::GpuCore& core) {
    core.SetPersistence(mode == 1 ? Persistence::kOn : Persistence::kOff);
    return Ok();
  });
}
