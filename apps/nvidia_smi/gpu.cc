#include "apps/nvidia_smi/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "zeus/base/own_program.h"
#include "zeus/base/text.h"

namespace zeus::nvidia_smi {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";

std::optional<std::string> LibraryPath() {
  if (const char* chosen = std::getenv("ZEUS_NVML_LIBRARY"); chosen != nullptr && *chosen != '\0')
    return chosen;
  const auto program = OwnProgram();
  if (!program.ok()) return std::nullopt;
  std::error_code failure;
  const auto beside = program.value().parent_path().parent_path() / kLibrary;
  if (std::filesystem::exists(beside, failure)) return beside.string();
  return std::nullopt;
}

}  // namespace

Result<Driver> Driver::Open() {
  ZEUS_TRY(SharedLibrary library, SharedLibrary::Open(LibraryPath(), {kLibrary}));
  Driver driver(std::move(library));
  const Return code = driver.Call("nvmlInit_v2");
  if (code == nvml::kSuccess) return driver;
  return Error{ErrorCode::kUnavailable,
               fmt::format("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
                           "driver: {}",
                           driver.Explain(code))};
}

const char* Driver::Explain(Return code) const {
  const char* (*explain)(Return) = nullptr;
  library_.FindOptional(explain, {"nvmlErrorString"});
  return explain == nullptr ? "unknown error" : explain(code);
}

std::string Gpu::bus_id() const {
  const auto pci = Get<nvml::PciInfo>("nvmlDeviceGetPciInfo_v3");
  return pci ? std::string(pci->bus_id) : fmt::format("GPU {}", index);
}

namespace {

Result<Gpu> Find(const Driver& driver, std::string_view wanted) {
  const std::string name(wanted);
  Device device = nullptr;
  Return code = nvml::kNotFound;
  if (const auto index = ParseUnsigned(wanted); index.ok() && index.value() < 1000)
    code =
        driver.Call("nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(index.value()), &device);
  for (const char* by : {"nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByPciBusId_v2",
                         "nvmlDeviceGetHandleBySerial"})
    if (device == nullptr) code = driver.Call(by, name.c_str(), &device);
  if (device == nullptr)
    return Error{ErrorCode::kNotFound,
                 fmt::format("No device could be found with the specified id \"{}\": {}", name,
                             driver.Explain(code))};
  unsigned index = 0;
  (void)driver.Call("nvmlDeviceGetIndex", device, &index);
  return Gpu{.driver = &driver, .device = device, .index = index};
}

}  // namespace

Result<std::vector<Gpu>> FindGpus(const Driver& driver, std::string_view wanted) {
  std::vector<Gpu> gpus;
  if (!wanted.empty()) {
    for (const std::string_view name : SplitAtCommas(wanted)) {
      ZEUS_TRY(const Gpu gpu, Find(driver, name));
      gpus.push_back(gpu);
    }
    return gpus;
  }
  unsigned count = 0;
  (void)driver.Call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    Gpu gpu{.driver = &driver, .device = nullptr, .index = i};
    // A GPU that has fallen off the bus has no handle; the others are shown.
    if (driver.Call("nvmlDeviceGetHandleByIndex_v2", i, &gpu.device) == nvml::kSuccess)
      gpus.push_back(gpu);
  }
  if (gpus.empty()) return Error{ErrorCode::kNotFound, "No devices were found"};
  return gpus;
}

}  // namespace zeus::nvidia_smi
