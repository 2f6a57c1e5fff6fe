#include "zeus/device/nvml/compute_processes.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "zeus/base/shared_library.h"
#include "zeus/device/nvml/nvml_abi.h"

namespace zeus {
namespace {

// The functions of NVML that list processes.
struct ProcessFunctions {
  nvml::Return (*init)() = nullptr;
  nvml::Return (*shutdown)() = nullptr;
  nvml::Return (*get_handle)(const char*, nvml::Device*) = nullptr;
  nvml::Return (*get_processes)(nvml::Device, unsigned*, nvml::ProcessInfo*) = nullptr;
};

Result<std::vector<int>> ListProcesses(const ProcessFunctions& api, const std::string& uuid) {
  nvml::Device device{};
  if (const nvml::Return code = api.get_handle(uuid.c_str(), &device); code != nvml::kSuccess)
    return Error{ErrorCode::kUnavailable, fmt::format("NVML does not know {} ({})", uuid, code)};
  std::vector<nvml::ProcessInfo> entries(64);
  auto count = static_cast<unsigned>(entries.size());
  nvml::Return code = api.get_processes(device, &count, entries.data());
  if (code == nvml::kInsufficientSize) {
    entries.resize(2 * static_cast<std::size_t>(count));  // More may have started meanwhile.
    count = static_cast<unsigned>(entries.size());
    code = api.get_processes(device, &count, entries.data());
  }
  if (code != nvml::kSuccess)
    return Error{ErrorCode::kUnavailable, fmt::format("NVML lists no processes ({})", code)};
  std::vector<int> processes;
  for (unsigned i = 0; i < count && i < entries.size(); ++i)
    processes.push_back(static_cast<int>(entries[i].pid));
  return processes;
}

}  // namespace

Result<std::vector<int>> ComputeProcesses(const std::string& uuid,
                                          const std::optional<std::string>& library) {
  ZEUS_TRY(SharedLibrary loaded, SharedLibrary::Open(library, {"libnvidia-ml.so.1"}));
  ProcessFunctions api;
  loaded.FindRequired(api.init, {"nvmlInit_v2"});
  loaded.FindRequired(api.shutdown, {"nvmlShutdown"});
  loaded.FindRequired(api.get_handle, {"nvmlDeviceGetHandleByUUID"});
  // Both versions fill the same structure.
  loaded.FindRequired(api.get_processes, {"nvmlDeviceGetComputeRunningProcesses_v3",
                                          "nvmlDeviceGetComputeRunningProcesses_v2"});
  ZEUS_RETURN_IF_ERROR(loaded.CheckComplete("NVML"));
  if (const nvml::Return code = api.init(); code != nvml::kSuccess)
    return Error{ErrorCode::kUnavailable, fmt::format("NVML does not start ({})", code)};
  auto processes = ListProcesses(api, uuid);
  api.shutdown();
  return processes;
}

struct ProcessSampler::Functions {
  explicit Functions(SharedLibrary loaded) : library(std::move(loaded)) {}

  SharedLibrary library;
  nvml::Return (*init)() = nullptr;
  nvml::Return (*shutdown)() = nullptr;
  nvml::Return (*get_handle)(const char*, nvml::Device*) = nullptr;
  nvml::Return (*get_samples)(nvml::Device, nvml::ProcessUtilizationSample*, unsigned*,
                              unsigned long long) = nullptr;
};

ProcessSampler::ProcessSampler(std::unique_ptr<Functions> functions)
    : functions_(std::move(functions)) {}

ProcessSampler::~ProcessSampler() { functions_->shutdown(); }

Result<std::unique_ptr<ProcessSampler>> ProcessSampler::Open(
    const std::optional<std::string>& library) {
  ZEUS_TRY(SharedLibrary loaded, SharedLibrary::Open(library, {"libnvidia-ml.so.1"}));
  auto api = std::make_unique<Functions>(std::move(loaded));
  api->library.FindRequired(api->init, {"nvmlInit_v2"});
  api->library.FindRequired(api->shutdown, {"nvmlShutdown"});
  api->library.FindRequired(api->get_handle, {"nvmlDeviceGetHandleByUUID"});
  api->library.FindRequired(api->get_samples, {"nvmlDeviceGetProcessUtilization"});
  ZEUS_RETURN_IF_ERROR(api->library.CheckComplete("NVML"));
  if (const nvml::Return code = api->init(); code != nvml::kSuccess)
    return Error{ErrorCode::kUnavailable, fmt::format("NVML does not start ({})", code)};
  return std::unique_ptr<ProcessSampler>(new ProcessSampler(std::move(api)));
}

Result<std::vector<ProcessSample>> ProcessSampler::Samples(const std::string& uuid,
                                                           WallTime since) {
  nvml::Device device{};
  if (const nvml::Return code = functions_->get_handle(uuid.c_str(), &device);
      code != nvml::kSuccess)
    return Error{ErrorCode::kUnavailable, fmt::format("NVML does not know {} ({})", uuid, code)};
  const auto after = static_cast<unsigned long long>(since.time_since_epoch().count());
  std::vector<nvml::ProcessUtilizationSample> entries(64);
  auto count = static_cast<unsigned>(entries.size());
  nvml::Return code = functions_->get_samples(device, entries.data(), &count, after);
  if (code == nvml::kInsufficientSize) {
    entries.resize(2 * static_cast<std::size_t>(count));  // More may have come meanwhile.
    count = static_cast<unsigned>(entries.size());
    code = functions_->get_samples(device, entries.data(), &count, after);
  }
  std::vector<ProcessSample> samples;
  if (code == nvml::kNotFound) return samples;  // Nothing ran.
  if (code != nvml::kSuccess)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("NVML tells no utilisation by processes ({})", code)};
  for (unsigned i = 0; i < count && i < entries.size(); ++i) {
    const nvml::ProcessUtilizationSample& entry = entries[i];
    // Drivers leave parts of the buffer as they were.
    if (entry.pid == 0 || entry.timestamp <= after || entry.sm_utilization > 100) continue;
    samples.push_back({.pid = entry.pid,
                       .time = WallTime(std::chrono::microseconds(entry.timestamp)),
                       .compute = entry.sm_utilization / 100.0});
  }
  return samples;
}

}  // namespace zeus
