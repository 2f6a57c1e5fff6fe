// NVML's functions for temperature, utilisation, memory, links and fans.
#include "apps/nvml_simulator/board.h"
#include "apps/nvml_simulator/convert.h"
#include "apps/nvml_simulator/export.h"
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

template <class Value, class Select>
Return Give(Device device, Value* value, Select&& select) {
  return Library::Instance().Read(device, {value}, [&](const GpuCall& gpu) {
    *value = select(gpu);
    return nvml::kSuccess;
  });
}

unsigned Generation(const GpuCall& gpu) { return BoardOf(gpu.core.model()).pcie_generation; }

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
  return Give(device, width, [](const GpuCall&) { return kLinkWidth; });
}

NVML_FUNCTION nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* width) {
  return Give(device, width, [](const GpuCall&) { return kLinkWidth; });
}

NVML_FUNCTION nvmlDeviceGetPcieThroughput(Device device, int counter, unsigned* kilobytes) {
  return Library::Instance().Read(device, {kilobytes}, [&](const GpuCall&) -> Return {
    if (counter < 0 || counter >= kPcieCounters) return nvml::kInvalidArgument;
    // The simulation has no traffic between GPU and host.
    return nvml::kNotSupported;
  });
}

NVML_FUNCTION nvmlDeviceGetFanSpeed(Device device, unsigned* percent) {
  return Library::Instance().Read(device, {percent}, [&](const GpuCall& gpu) -> Return {
    const sim::GpuModel& model = gpu.core.model();
    if (BoardOf(model).passive) return nvml::kNotSupported;
    const double heat = (gpu.core.temperature() - model.thermal.ambient) /
                        (model.thermal.slowdown - model.thermal.ambient);
    *percent = ToPercent(std::fmin(std::fmax(heat, 0.0), 1.0));
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetEncoderUtilization(Device device, unsigned* utilization,
                                              unsigned* period) {
  return CodecUtilization(device, utilization, period);
}

NVML_FUNCTION nvmlDeviceGetDecoderUtilization(Device device, unsigned* utilization,
                                              unsigned* period) {
  return CodecUtilization(device, utilization, period);
}
