// NVML's functions to initialise and shut down, and those that concern the whole machine.
#include <fmt/format.h>

#include <fstream>
#include <string>

#include "apps/nvml_simulator/export.h"
#include "apps/nvml_simulator/library.h"
#include "apps/nvml_simulator/text.h"
#include "zeus/base/file.h"

namespace zeus::nvml_simulator {
namespace {

// No real driver has these versions, so a log shows that the GPUs were simulated.
constexpr std::string_view kDriverVersion = "535.00.sim";
constexpr std::string_view kNvmlVersion = "12.535.00.sim";
constexpr int kCudaVersion = 12020;

const char* Describe(Return code) {
  switch (code) {
    case nvml::kSuccess:
      return "Success";
    case nvml::kUninitialized:
      return "Uninitialized";
    case nvml::kInvalidArgument:
      return "Invalid Argument";
    case nvml::kNotSupported:
      return "Not Supported";
    case nvml::kNoPermission:
      return "Insufficient Permissions";
    case nvml::kNotFound:
      return "Not Found";
    case nvml::kInsufficientSize:
      return "Insufficient Size";
    case nvml::kDriverNotLoaded:
      return "Driver Not Loaded (no simulated node: run zeus sim start, or set ZEUS_SIM=2xA100)";
    case nvml::kTimeout:
      return "Timeout";
    case nvml::kGpuIsLost:
      return "GPU is lost";
    case nvml::kNoData:
      return "No Data";
    case nvml::kArgumentVersionMismatch:
      return "Argument Version Mismatch";
    case nvml::kUnknown:
      return "Unknown Error";
    default:
      return "Error of an unknown kind";
  }
}

Return CopyVersion(std::string_view version, char* buffer, unsigned length) {
  return Library::Instance().OnNode({buffer},
                                    [&](const auto&) { return CopyText(version, buffer, length); });
}

}  // namespace
}  // namespace zeus::nvml_simulator

using namespace zeus;
using namespace zeus::nvml_simulator;

NVML_FUNCTION nvmlInit_v2() { return Library::Instance().Initialize(); }
NVML_FUNCTION nvmlInit() { return Library::Instance().Initialize(); }
NVML_FUNCTION nvmlInitWithFlags(unsigned /*flags*/) { return Library::Instance().Initialize(); }
NVML_FUNCTION nvmlShutdown() { return Library::Instance().Shutdown(); }

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(Return code) {
  // The error string is NVML's only way to say why there is no driver.
  const char* const reason = Library::Instance().InitializationError(code);
  return reason != nullptr ? reason : Describe(code);
}

NVML_FUNCTION nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return CopyVersion(kDriverVersion, version, length);
}

NVML_FUNCTION nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return CopyVersion(kNvmlVersion, version, length);
}

NVML_FUNCTION nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return Library::Instance().OnNode({version}, [&](const auto&) {
    *version = kCudaVersion;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

NVML_FUNCTION nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return Library::Instance().OnNode({name}, [&](const auto&) -> Return {
    if (length == 0) return nvml::kInvalidArgument;
    const auto command = ReadSmallFile(fmt::format("/proc/{}/cmdline", pid), 1 << 20);
    if (!command.ok()) return nvml::kNotFound;
    // Arguments are separated by zeros; the first one is the program. NVML truncates it likewise.
    const std::string_view program(command.value().c_str());
    return CopyText(program.substr(0, length - 1), name, length);
  });
}
