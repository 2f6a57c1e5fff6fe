#include "zeus/device/nvml/nvml_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "zeus/base/text.h"

namespace zeus::nvml {
namespace {

struct Meaning {
  Return code;
  ErrorCode error;
  std::string_view problem;
  std::string_view remedy;  // Empty where the user can do nothing.
};

constexpr std::array kMeanings = {
    Meaning{kUninitialized, ErrorCode::kUnavailable, "NVML is not initialised in this process", ""},
    Meaning{kInvalidArgument, ErrorCode::kInvalidArgument, "the driver rejected the argument", ""},
    Meaning{kNotSupported, ErrorCode::kNotSupported, "not supported by this GPU or its mode", ""},
    Meaning{kNoPermission, ErrorCode::kPermissionDenied, "the driver refused",
            "needs root (CAP_SYS_ADMIN in containers)"},
    Meaning{kAlreadyInitialized, ErrorCode::kInternal, "NVML was initialised twice", ""},
    Meaning{kNotFound, ErrorCode::kNotFound, "the driver knows no such thing", ""},
    Meaning{kInsufficientSize, ErrorCode::kInternal, "the driver has more data than expected", ""},
    Meaning{kInsufficientPower, ErrorCode::kUnavailable, "the GPU lacks external power",
            "check its power cables"},
    Meaning{kDriverNotLoaded, ErrorCode::kUnavailable, "the NVIDIA kernel driver is not loaded",
            "run modprobe nvidia"},
    Meaning{kTimeout, ErrorCode::kUnavailable, "the driver did not answer in time", "try again"},
    Meaning{kIrqIssue, ErrorCode::kUnavailable, "the GPU's interrupts do not arrive",
            "see dmesg, then reboot"},
    Meaning{kLibraryNotFound, ErrorCode::kNotSupported,
            "the driver lacks a library that NVML needs", "reinstall the NVIDIA driver"},
    Meaning{kFunctionNotFound, ErrorCode::kNotSupported, "this driver does not know the function",
            "a newer NVIDIA driver may"},
    Meaning{kCorruptedInforom, ErrorCode::kUnavailable, "the GPU's information ROM is corrupted",
            "have the board serviced"},
    Meaning{kGpuIsLost, ErrorCode::kUnavailable, "the GPU fell off the bus",
            "see dmesg, then reset the GPU or reboot"},
    Meaning{kResetRequired, ErrorCode::kUnavailable, "the GPU must be reset before it can be used",
            "run nvidia-smi --gpu-reset"},
    Meaning{kOperatingSystem, ErrorCode::kPermissionDenied,
            "the operating system blocks the GPU (cgroup or container)",
            "give the process access to /dev/nvidia*"},
    Meaning{kLibRmVersionMismatch, ErrorCode::kUnavailable,
            "the NVML library and the kernel driver have different versions",
            "reboot, or reload the kernel driver"},
    Meaning{kInUse, ErrorCode::kUnavailable, "the GPU is in use by another client", "try again"},
    Meaning{kMemory, ErrorCode::kUnavailable, "the driver is out of memory", ""},
    Meaning{kNoData, ErrorCode::kUnavailable, "the driver has no data yet", "try again"},
    Meaning{kVgpuEccNotSupported, ErrorCode::kNotSupported,
            "not supported by a virtual GPU while ECC is on", ""},
    Meaning{kInsufficientResources, ErrorCode::kUnavailable, "the driver is out of resources", ""},
    Meaning{kFreqNotSupported, ErrorCode::kInvalidArgument,
            "the GPU does not support this frequency", ""},
    Meaning{kArgumentVersionMismatch, ErrorCode::kNotSupported,
            "this driver knows only another version of the call", "a newer NVIDIA driver may"},
    Meaning{kDeprecated, ErrorCode::kNotSupported, "this driver no longer has the function", ""},
    Meaning{kNotReady, ErrorCode::kUnavailable, "the GPU is not ready", "try again"},
    Meaning{kGpuNotFound, ErrorCode::kNotFound, "the driver finds no GPU", ""},
    Meaning{kInvalidState, ErrorCode::kUnavailable, "the GPU's present state forbids it", ""},
    Meaning{kResetTypeNotSupported, ErrorCode::kNotSupported,
            "the GPU does not support this kind of reset", ""},
    Meaning{kUnknown, ErrorCode::kUnavailable, "the driver failed for an unknown reason",
            "see dmesg"},
};

}  // namespace

Error NvmlError(Return code, std::string_view doing, Privilege privilege) {
  if (code == kNoPermission && privilege == Privilege::kRoot)
    return {ErrorCode::kPermissionDenied, fmt::format("{}: {}", doing, RefusalAdvice(privilege))};
  const auto* const meaning = std::ranges::find(kMeanings, code, &Meaning::code);
  if (meaning == kMeanings.end()) {
    return {ErrorCode::kUnavailable,
            fmt::format("{}: the driver failed with the unknown code {}", doing, code)};
  }
  return {meaning->error, fmt::format("{}: {}{}{}", doing, meaning->problem,
                                      meaning->remedy.empty() ? "" : ": ", meaning->remedy)};
}

Error InitError(Return code, std::string_view doing, std::string_view said) {
  const bool says_more =
      code == kDriverNotLoaded && !said.empty() && LowerCase(said) != "driver not loaded";
  if (says_more) return {ErrorCode::kUnavailable, fmt::format("{}: {}", doing, Printable(said))};
  Error error = NvmlError(code, doing);
  const bool unknown = std::ranges::find(kMeanings, code, &Meaning::code) == kMeanings.end();
  if (unknown && !said.empty()) error.message += fmt::format(" ({})", Printable(said));
  return error;
}

ProblemAndRemedy SplitRemedy(const Error& error) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.remedy.empty() || !error.message.ends_with(meaning.remedy)) continue;
    const std::size_t problem_size = error.message.size() - meaning.remedy.size() - 2;
    return {error.message.substr(0, problem_size), std::string(meaning.remedy)};
  }
  return {error.message, ""};
}

bool DeviceIsGone(Return code) {
  return code == kGpuIsLost || code == kResetRequired || code == kUninitialized ||
         code == kDriverNotLoaded;
}

bool NeverWorks(Return code) {
  constexpr std::array kNever = {kInvalidArgument,         kNotSupported,   kNotFound,
                                 kFunctionNotFound,        kDeprecated,     kVgpuEccNotSupported,
                                 kArgumentVersionMismatch, kLibraryNotFound};
  return std::ranges::find(kNever, code) != kNever.end();
}

}  // namespace zeus::nvml
