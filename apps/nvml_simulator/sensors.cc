// NVML's functions for temperature, utilisation, memory, links and fans.

#include "apps/nvml_simulator/board.h"
#include "apps/nvml_simulator/library.h"

namespace zeus::nvml_simulator {
namespace {

constexpr int kSensorGpu = 0;
constexpr int kThresholdShutdown = 0;
constexpr int kThresholdSlowdown = 1;
constexpr int kThresholdGpuMax = 3;
constexpr double kShutdownMargin = 5;  // Kelvin above the slowdown temperature.
constexpr unsigned kLinkWidth = 16;
constexpr int kPcieCounters = 2;                    // Transmit and receive.
constexpr unsigned kCodecSamplingPeriod = 167'000;  // Microseconds.

unsigned Generation(const GpuCall& gpu) { return FindBoard(gpu.core.model()).pcie_generation; }

unsigned FanCount(const GpuCall& gpu) { return FindBoard(gpu.core.model()).passive ? 0 : 1; }

Return CodecUtilization(Device device, unsigned* utilization, unsigned* period) {
  return Library::Instance().Read(device, {utilization, period}, [&](const GpuCall&) {
    *utilization = 0;
    *period = kCodecSamplingPeriod;
    return nvml::kSuccess;
  });
}

}  // namespace
}  // namespace zeus::nvml_simulator

using namespace zeus;
using namespace zeus::nvml_simulator;

NVML_FUNCTION nvmlDeviceGetTemperature(Device device, int sensor, unsigned* degrees) {
  return Library::Instance().Read(device, {degrees}, [&](const GpuCall& gpu) -> Return {
    if (sensor != kSensorGpu) return nvml::kInvalidArgument;
    *degrees = ToDegrees(gpu.core.temperature());
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetTemperatureV(Device device, nvml::TemperatureV1* temperature) {
  return Library::Instance().Read(device, {temperature}, [&](const GpuCall& gpu) -> Return {
    if (temperature->version != nvml::StructVersion<nvml::TemperatureV1>(1))
      return nvml::kArgumentVersionMismatch;
    if (temperature->sensor_type != kSensorGpu) return nvml::kInvalidArgument;
    temperature->temperature = static_cast<int>(ToDegrees(gpu.core.temperature()));
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetTemperatureThreshold(Device device, int threshold, unsigned* degrees) {
  return Library::Instance().Read(device, {degrees}, [&](const GpuCall& gpu) -> Return {
    const Celsius slowdown = gpu.core.model().thermal.slowdown;
    if (threshold == kThresholdShutdown) {
      *degrees = ToDegrees(slowdown + Celsius(kShutdownMargin));
    } else if (threshold == kThresholdSlowdown) {
      *degrees = ToDegrees(slowdown);
    } else if (threshold == kThresholdGpuMax) {
      *degrees = ToDegrees(gpu.core.model().thermal.release);
    } else {
      return threshold < 0 ? nvml::kInvalidArgument : nvml::kNotSupported;
    }
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetUtilizationRates(Device device, nvml::UtilizationRates* rates) {
  return Library::Instance().Read(device, {rates}, [&](const GpuCall& gpu) -> Return {
    if (gpu.core.fault(sim::FaultKind::kMigEnabled)) return nvml::kNotSupported;
    const Utilization now = gpu.core.utilization();
    *rates = {.gpu = ToPercent(now.compute), .memory = ToPercent(now.memory)};
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetMemoryInfo(Device device, nvml::MemoryInfo* memory) {
  return Give(device, memory, [](const GpuCall& gpu) -> nvml::MemoryInfo {
    const MemoryUse use = gpu.core.memory();
    return {
        .total = use.total_bytes, .free = use.total_bytes - use.used_bytes, .used = use.used_bytes};
  });
}

NVML_FUNCTION nvmlDeviceGetMemoryInfo_v2(Device device, nvml::MemoryInfoV2* memory) {
  return Library::Instance().Read(device, {memory}, [&](const GpuCall& gpu) -> Return {
    if (memory->version != nvml::StructVersion<nvml::MemoryInfoV2>(2))
      return nvml::kArgumentVersionMismatch;
    const MemoryUse use = gpu.core.memory();
    memory->total = use.total_bytes;
    memory->reserved = 0;
    memory->free = use.total_bytes - use.used_bytes;
    memory->used = use.used_bytes;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned* generation) {
  return Give(device, generation, Generation);
}

NVML_FUNCTION nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* generation) {
  return Give(device, generation, Generation);
}

NVML_FUNCTION nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned* width) {
  return Give(device, width, kLinkWidth);
}

NVML_FUNCTION nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* width) {
  return Give(device, width, kLinkWidth);
}

NVML_FUNCTION nvmlDeviceGetPcieThroughput(Device device, int counter, unsigned* kilobytes) {
  return Library::Instance().Read(device, {kilobytes}, [&](const GpuCall&) -> Return {
    if (counter < 0 || counter >= kPcieCounters) return nvml::kInvalidArgument;
    *kilobytes = 0;  // The simulation has no traffic between GPU and host.
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetPcieReplayCounter(Device device, unsigned* replays) {
  return Give(device, replays, 0);
}

NVML_FUNCTION nvmlDeviceGetGpuMaxPcieLinkGeneration(Device device, unsigned* generation) {
  return Give(device, generation, Generation);
}

// Megabits per second and lane: 2500 in the first generation, 8000 in the third.
NVML_FUNCTION nvmlDeviceGetPcieSpeed(Device device, unsigned* speed) {
  return Give(device, speed, [](const GpuCall& gpu) {
    return Generation(gpu) < 3 ? 5000 : 1000U << Generation(gpu);
  });
}

// nvmlPcieLinkMaxSpeed counts the generations.
NVML_FUNCTION nvmlDeviceGetPcieLinkMaxSpeed(Device device, unsigned* speed) {
  return Give(device, speed, Generation);
}

NVML_FUNCTION nvmlDeviceGetNumFans(Device device, unsigned* count) {
  return Give(device, count, FanCount);
}

NVML_FUNCTION nvmlDeviceGetFanSpeed_v2(Device device, unsigned fan, unsigned* percent) {
  return Library::Instance().Read(device, {percent}, [&](const GpuCall& gpu) -> Return {
    if (FanCount(gpu) == 0) return nvml::kNotSupported;
    if (fan >= FanCount(gpu)) return nvml::kInvalidArgument;
    const sim::GpuModel& model = gpu.core.model();
    const double heat = (gpu.core.temperature() - model.thermal.ambient) /
                        (model.thermal.slowdown - model.thermal.ambient);
    *percent = ToPercent(std::fmin(std::fmax(heat, 0.0), 1.0));
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetFanSpeed(Device device, unsigned* percent) {
  return nvmlDeviceGetFanSpeed_v2(device, 0, percent);
}

NVML_FUNCTION nvmlDeviceGetTargetFanSpeed(Device device, unsigned fan, unsigned* percent) {
  return nvmlDeviceGetFanSpeed_v2(device, fan, percent);
}

NVML_FUNCTION nvmlDeviceGetEncoderUtilization(Device device, unsigned* utilization,
                                              unsigned* period) {
  return CodecUtilization(device, utilization, period);
}

NVML_FUNCTION nvmlDeviceGetDecoderUtilization(Device device, unsigned* utilization,
                                              unsigned* period) {
  return CodecUtilization(device, utilization, period);
}

// nvmlDeviceGetFieldValues: many values of one moment in one call.
namespace zeus::nvml_simulator {
namespace {

Return Put(nvml::FieldValue& field, unsigned value) {
  field.value_type = nvml::kValueUnsigned;
  field.value.as_unsigned_long_long = value;
  return nvml::kSuccess;
}

Return PutPower(nvml::FieldValue& field, const Result<Watts>& power) {
  if (!power.ok()) return ToReturn(power.error());
  return Put(field, ToMilliwatts(power.value()));
}

Return PutEnergy(nvml::FieldValue& field, const sim::GpuCore& core) {
  const auto energy = core.counter_millijoules();
  if (!energy.ok()) return ToReturn(energy.error());
  field.value_type = nvml::kValueUnsignedLongLong;
  field.value.as_unsigned_long_long = energy.value();
  return nvml::kSuccess;
}

// Stores the average power of the GPU or of its memory.
Return PutAverage(nvml::FieldValue& field, const GpuCall& gpu) {
  if (field.scope_id == nvml::kScopeMemory) return PutPower(field, gpu.Power(PowerKind::kMemory));
  return PutPower(field, gpu.Power(PowerKind::kOneSecondAverage));
}

// A simulated GPU has no module around it, and for memory it has only the average.
bool HasScope(const nvml::FieldValue& field) {
  return field.scope_id == nvml::kScopeGpu ||
         (field.scope_id == nvml::kScopeMemory && field.field_id == nvml::kFieldPowerAverage);
}

Return Fill(nvml::FieldValue& field, const GpuCall& gpu) {
  if (!HasScope(field)) return nvml::kNotSupported;
  switch (field.field_id) {
    case nvml::kFieldTotalEnergy:
    case nvml::kFieldEnergy:
      return PutEnergy(field, gpu.core);
    case nvml::kFieldPowerAverage:
      return PutAverage(field, gpu);
    case nvml::kFieldPowerInstant:
      return PutPower(field, gpu.Power(PowerKind::kInstant));
    case nvml::kFieldPowerMinLimit:
      return PutPower(field, gpu.core.power_limit().range.min);
    case nvml::kFieldPowerMaxLimit:
      return PutPower(field, gpu.core.power_limit().range.max);
    case nvml::kFieldPowerDefaultLimit:
      return PutPower(field, gpu.core.power_limit().default_limit);
    case nvml::kFieldPowerCurrentLimit:
      return PutPower(field, gpu.core.power_limit().enforced);
    case nvml::kFieldPowerRequestedLimit:
      return PutPower(field, gpu.core.power_limit().requested);
    default:
      return nvml::kNotSupported;
  }
}

}  // namespace
}  // namespace zeus::nvml_simulator

NVML_FUNCTION nvmlDeviceGetFieldValues(Device device, int count, nvml::FieldValue* fields) {
  return Library::Instance().Read(device, {fields}, [&](const GpuCall& gpu) -> Return {
    if (count <= 0) return nvml::kInvalidArgument;
    const long long now = gpu.Timestamp();
    for (int i = 0; i < count; ++i) {
      nvml::FieldValue& field = fields[i];
      field.timestamp = now;
      field.latency_usec = 0;
      field.nvml_return = Fill(field, gpu);
    }
    return nvml::kSuccess;
  });
}
