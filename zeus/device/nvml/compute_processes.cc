#include "zeus/device/nvml/compute_processes.h"

#include <fmt/format.h>

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

}  // namespace zeus
