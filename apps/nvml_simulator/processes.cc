// NVML's functions that list the processes on a GPU.
#include <vector>

#include "apps/nvml_simulator/convert.h"
#include "apps/nvml_simulator/export.h"
#include "apps/nvml_simulator/library.h"

namespace zeus::nvml_simulator {
namespace {

void Fill(nvml::ProcessInfoV1& entry, int pid, unsigned long long memory) {
  entry = {.pid = static_cast<unsigned>(pid), .used_gpu_memory = memory};
}

void Fill(nvml::ProcessInfo& entry, int pid, unsigned long long memory) {
  entry = {.pid = static_cast<unsigned>(pid),
           .used_gpu_memory = memory,
           .gpu_instance_id = nvml::kNoMigInstance,
           .compute_instance_id = nvml::kNoMigInstance};
}

// `count` is the capacity on entry and the required size on return.
template <class Entry>
Return CopyProcesses(Device device, unsigned* count, Entry* entries) {
  return Library::Instance().Read(device, {count}, [&](const GpuCall& gpu) -> Return {
    const std::vector<int> pids = gpu.core.processes();
    const auto needed = static_cast<unsigned>(pids.size());
    const bool fits = *count >= needed && (needed == 0 || entries != nullptr);
    *count = needed;
    if (!fits) return nvml::kInsufficientSize;
    for (unsigned i = 0; i < needed; ++i)
      Fill(entries[i], pids[i], gpu.core.memory().used_bytes / needed);
    return nvml::kSuccess;
  });
}

// Simulated jobs only compute: there are no graphics processes and no MPS clients.
Return ReturnNoProcesses(Device device, unsigned* count) {
  return Library::Instance().Read(device, {count}, [&](const GpuCall&) {
    *count = 0;
    return nvml::kSuccess;
  });
}

}  // namespace
}  // namespace zeus::nvml_simulator

using namespace zeus;
using namespace zeus::nvml_simulator;

NVML_FUNCTION nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count,
                                                   nvml::ProcessInfoV1* entries) {
  return CopyProcesses(device, count, entries);
}
NVML_FUNCTION nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count,
                                                      nvml::ProcessInfo* entries) {
  return CopyProcesses(device, count, entries);
}
NVML_FUNCTION nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count,
                                                      nvml::ProcessInfo* entries) {
  return CopyProcesses(device, count, entries);
}

NVML_FUNCTION nvmlDeviceGetGraphicsRunningProcesses(Device device, unsigned* count,
                                                    nvml::ProcessInfoV1* /*entries*/) {
  return ReturnNoProcesses(device, count);
}
NVML_FUNCTION nvmlDeviceGetGraphicsRunningProcesses_v2(Device device, unsigned* count,
                                                       nvml::ProcessInfo* /*entries*/) {
  return ReturnNoProcesses(device, count);
}
NVML_FUNCTION nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned* count,
                                                       nvml::ProcessInfo* /*entries*/) {
  return ReturnNoProcesses(device, count);
}

NVML_FUNCTION nvmlDeviceGetMPSComputeRunningProcesses(Device device, unsigned* count,
                                                      nvml::ProcessInfoV1* /*entries*/) {
  return ReturnNoProcesses(device, count);
}
NVML_FUNCTION nvmlDeviceGetMPSComputeRunningProcesses_v2(Device device, unsigned* count,
                                                         nvml::ProcessInfo* /*entries*/) {
  return ReturnNoProcesses(device, count);
}
NVML_FUNCTION nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned* count,
                                                         nvml::ProcessInfo* /*entries*/) {
  return ReturnNoProcesses(device, count);
}

NVML_FUNCTION nvmlDeviceGetProcessUtilization(Device device,
                                              nvml::ProcessUtilizationSample* samples,
                                              unsigned* count, unsigned long long /*last_seen*/) {
  return Library::Instance().Read(device, {count}, [&](const GpuCall& gpu) -> Return {
    if (gpu.core.fault(sim::FaultKind::kMigEnabled)) return nvml::kNotSupported;
    const std::vector<int> pids = gpu.core.processes();
    const auto needed = static_cast<unsigned>(pids.size());
    if (needed == 0) {
      *count = 0;
      return nvml::kNotFound;
    }
    const bool fits = samples != nullptr && *count >= needed;
    *count = needed;
    if (!fits) return nvml::kInsufficientSize;
    const Utilization use = gpu.core.utilization();
    for (unsigned i = 0; i < needed; ++i) {
      samples[i] = {.pid = static_cast<unsigned>(pids[i]),
                    .timestamp = static_cast<unsigned long long>(gpu.Timestamp()),
                    .sm_utilization = ToPercent(use.compute / needed),
                    .memory_utilization = ToPercent(use.memory / needed),
                    .encoder_utilization = 0,
                    .decoder_utilization = 0};
    }
    return nvml::kSuccess;
  });
}
