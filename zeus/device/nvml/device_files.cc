#include "zeus/device/nvml/device_files.h"

#include <fmt/format.h>

#include <array>

#include "zeus/base/shared_library.h"
#include "zeus/device/nvml/nvml_abi.h"

namespace zeus {
namespace {

// The functions of NVML that tell device files.
struct FileFunctions {
  nvml::Return (*init)() = nullptr;
  nvml::Return (*shutdown)() = nullptr;
  nvml::Return (*get_count)(unsigned*) = nullptr;
  nvml::Return (*get_handle)(unsigned, nvml::Device*) = nullptr;
  nvml::Return (*get_uuid)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Return (*get_minor)(nvml::Device, unsigned*) = nullptr;
};

// A GPU that is lost has no file here; the others do.
Result<std::map<std::string, std::string>> ListFiles(const FileFunctions& api) {
  unsigned count = 0;
  if (const nvml::Return code = api.get_count(&count); code != nvml::kSuccess)
    return Error{ErrorCode::kUnavailable, fmt::format("NVML does not count GPUs ({})", code)};
  std::map<std::string, std::string> files;
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device device{};
    std::array<char, 96> uuid{};
    unsigned minor = 0;
    if (api.get_handle(i, &device) == nvml::kSuccess &&
        api.get_uuid(device, uuid.data(), uuid.size() - 1) == nvml::kSuccess &&
        api.get_minor(device, &minor) == nvml::kSuccess)
      files[uuid.data()] = fmt::format("/dev/nvidia{}", minor);
  }
  return files;
}

}  // namespace

Result<std::map<std::string, std::string>> NvidiaDeviceFiles(
    const std::optional<std::string>& library) {
  ZEUS_TRY(SharedLibrary loaded, SharedLibrary::Open(library, {"libnvidia-ml.so.1"}));
  FileFunctions api;
  loaded.FindRequired(api.init, {"nvmlInit_v2"});
  loaded.FindRequired(api.shutdown, {"nvmlShutdown"});
  loaded.FindRequired(api.get_count, {"nvmlDeviceGetCount_v2"});
  loaded.FindRequired(api.get_handle, {"nvmlDeviceGetHandleByIndex_v2"});
  loaded.FindRequired(api.get_uuid, {"nvmlDeviceGetUUID"});
  loaded.FindRequired(api.get_minor, {"nvmlDeviceGetMinorNumber"});
  ZEUS_RETURN_IF_ERROR(loaded.CheckComplete("NVML"));
  if (const nvml::Return code = api.init(); code != nvml::kSuccess)
    return Error{ErrorCode::kUnavailable, fmt::format("NVML does not start ({})", code)};
  auto files = ListFiles(api);
  api.shutdown();
  return files;
}

}  // namespace zeus
