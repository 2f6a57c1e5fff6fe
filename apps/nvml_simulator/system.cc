// NVML's functions to initialise and shut down, and those that concern the whole machine.

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/nvml_simulator/board.h"
#include "apps/nvml_simulator/library.h"
#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus::nvml_simulator {
namespace {

// No real driver has these versions, so a log shows that the GPUs were simulated. They have numbers
// between the points only, because programs split and compare them.
constexpr std::string_view kDriverVersion = "535.00.00";
constexpr std::string_view kNvmlVersion = "12.535.00.00";
constexpr int kCudaVersion = 12020;

constexpr std::pair<Return, const char*> kDescriptions[] = {
    {nvml::kSuccess, "Success"},
    {nvml::kUninitialized, "Uninitialized"},
    {nvml::kInvalidArgument, "Invalid Argument"},
    {nvml::kNotSupported, "Not Supported"},
    {nvml::kNoPermission, "Insufficient Permissions"},
    {nvml::kAlreadyInitialized, "Already Initialized"},
    {nvml::kNotFound, "Not Found"},
    {nvml::kInsufficientSize, "Insufficient Size"},
    {nvml::kInsufficientPower, "Insufficient External Power"},
    {nvml::kDriverNotLoaded,
     "Driver Not Loaded (no simulated node: run zeus sim start, or set ZEUS_SIM=2xA100)"},
    {nvml::kTimeout, "Timeout"},
    {nvml::kIrqIssue, "Interrupt Request Issue"},
    {nvml::kLibraryNotFound, "NVML Shared Library Not Found"},
    {nvml::kFunctionNotFound, "Function Not Found"},
    {nvml::kCorruptedInforom, "Corrupted infoROM"},
    {nvml::kGpuIsLost, "GPU is lost"},
    {nvml::kResetRequired, "GPU requires restart"},
    {nvml::kOperatingSystem, "The operating system has refused the request"},
    {nvml::kLibRmVersionMismatch, "Driver/library version mismatch"},
    {nvml::kInUse, "In use by another client"},
    {nvml::kMemory, "Insufficient Memory"},
    {nvml::kNoData, "No Data"},
    {nvml::kVgpuEccNotSupported, "Not available for a virtual GPU, because ECC is on"},
    {nvml::kInsufficientResources, "Insufficient Resources"},
    {nvml::kFreqNotSupported, "Frequency Not Supported"},
    {nvml::kArgumentVersionMismatch, "Argument Version Mismatch"},
    {nvml::kDeprecated, "Deprecated"},
    {nvml::kNotReady, "System Not Ready"},
    {nvml::kGpuNotFound, "No GPUs Found"},
    {nvml::kInvalidState, "Invalid State"},
    {nvml::kResetTypeNotSupported, "Reset Type Not Supported"},
    {nvml::kUnknown, "Unknown Error"},
};

const char* Describe(Return code) {
  for (const auto& [known, description] : kDescriptions)
    if (known == code) return description;
  return "Error of an unknown kind";
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

// NVML's functions that count GPUs, identify them, and find them by UUID, serial number or PCI
// address.
namespace zeus::nvml_simulator {
namespace {

constexpr int kHexadecimal = 16;

struct PciAddress {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;

  bool operator==(const PciAddress&) const = default;
};

Result<unsigned> ParsePart(std::string_view text, std::uint64_t max) {
  ZEUS_TRY(const std::uint64_t number, ParseUnsigned(text, kHexadecimal));
  if (number > max) return Error{ErrorCode::kInvalidArgument, "too large for an address"};
  return static_cast<unsigned>(number);
}

// Parses "00000000:1A:00.0", "0000:1a:00" or "1a:00.0"; nothing may follow.
Result<PciAddress> ParsePciAddress(std::string_view text) {
  const auto slot = text.rfind(':');
  if (slot == std::string_view::npos) return Error{ErrorCode::kInvalidArgument, "not an address"};
  const std::string_view front = text.substr(0, slot);
  const auto bus_at = front.rfind(':');
  const bool has_domain = bus_at != std::string_view::npos;
  const std::string_view device = text.substr(slot + 1);
  const auto point = device.find('.');
  PciAddress address;
  if (has_domain) {
    ZEUS_TRY(address.domain, ParsePart(front.substr(0, bus_at), 0xffff'ffff));
  }
  ZEUS_TRY(address.bus, ParsePart(has_domain ? front.substr(bus_at + 1) : front, 0xff));
  ZEUS_TRY(address.device, ParsePart(device.substr(0, point), 0x1f));
  if (point != std::string_view::npos) {
    ZEUS_TRY(address.function, ParsePart(device.substr(point + 1), 7));
  }
  return address;
}

nvml::PciInfo DescribePci(const GpuCall& gpu) {
  const PciAddress address = ParsePciAddress(gpu.core.pci_address()).value();
  const Board& board = FindBoard(gpu.core.model());
  nvml::PciInfo pci{.bus_id_legacy = {},
                    .domain = address.domain,
                    .bus = address.bus,
                    .device = address.device,
                    .pci_device_id = board.pci_device_id,
                    .pci_subsystem_id = board.pci_device_id,
                    .bus_id = {}};
  fmt::format_to_n(pci.bus_id_legacy, sizeof(pci.bus_id_legacy) - 1, "{:04X}:{:02X}:{:02X}.0",
                   pci.domain, pci.bus, pci.device);
  fmt::format_to_n(pci.bus_id, sizeof(pci.bus_id) - 1, "{:08X}:{:02X}:{:02X}.0", pci.domain,
                   pci.bus, pci.device);
  return pci;
}

std::string MakeSerial(const GpuCall& gpu) {
  return fmt::format("{:013}", (gpu.seed * sim::kMaxGpusPerNode + gpu.index) % 10'000'000'000'000);
}

// NVML attaches a GPU when its handle is requested, so a lost GPU has none.
Return CopyHandle(unsigned index, Device* device) {
  if (device == nullptr) return nvml::kInvalidArgument;
  const Device handle = Library::MakeHandle(index);
  const Return opened = Library::Instance().OpenDevice(handle);
  if (opened == nvml::kSuccess) *device = handle;
  return opened;
}

// Returns the handle of the first GPU for which `matches` holds. A lost GPU cannot be examined: if
// no other one matches, its error is returned, because it may be the one that was meant. As with
// NVIDIA's library, what is no PCI address is only known of GPUs that are open.
enum class Examined { kUnopened, kOpened };
template <class Matches>
Return CopyMatchingHandle(const void* key, Device* device, Examined examined, Matches&& matches) {
  unsigned count = 0;
  const Return known = Library::Instance().OnNode({key, device}, [&](const sim::SharedNode& node) {
    count = node.gpu_count();
    return nvml::kSuccess;
  });
  if (known != nvml::kSuccess) return known;
  Return outcome = nvml::kNotFound;
  for (unsigned i = 0; i < count; ++i) {
    const auto check = [&](const GpuCall& gpu) -> Return {
      return matches(gpu) ? nvml::kSuccess : nvml::kNotFound;
    };
    if (examined == Examined::kOpened) (void)Library::Instance().OpenDevice(Library::MakeHandle(i));
    const Return match = Library::Instance().Read(Library::MakeHandle(i), {}, check);
    if (match == nvml::kSuccess) return CopyHandle(i, device);
    if (match != nvml::kNotFound) outcome = match;
  }
  return outcome;
}

}  // namespace
}  // namespace zeus::nvml_simulator

NVML_FUNCTION nvmlDeviceGetCount_v2(unsigned* count) {
  return Library::Instance().OnNode({count}, [&](const sim::SharedNode& node) {
    *count = node.gpu_count();
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

NVML_FUNCTION nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  unsigned count = 0;
  if (const Return failure = nvmlDeviceGetCount_v2(&count); failure != nvml::kSuccess)
    return failure;
  if (index >= count) return nvml::kInvalidArgument;
  return CopyHandle(index, device);
}

NVML_FUNCTION nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_FUNCTION nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  return CopyMatchingHandle(uuid, device, Examined::kOpened,
                            [&](const GpuCall& gpu) { return gpu.core.uuid() == uuid; });
}

NVML_FUNCTION nvmlDeviceGetHandleBySerial(const char* serial, Device* device) {
  return CopyMatchingHandle(serial, device, Examined::kOpened,
                            [&](const GpuCall& gpu) { return MakeSerial(gpu) == serial; });
}

NVML_FUNCTION nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  bool malformed = false;
  const Return found =
      CopyMatchingHandle(bus_id, device, Examined::kUnopened, [&](const GpuCall& gpu) {
        const auto address = ParsePciAddress(bus_id);
        malformed = !address.ok();
        return address.ok() && address.value() == ParsePciAddress(gpu.core.pci_address()).value();
      });
  return malformed ? nvml::kInvalidArgument : found;
}

NVML_FUNCTION nvmlDeviceGetHandleByPciBusId(const char* bus_id, Device* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

NVML_FUNCTION nvmlDeviceGetName(Device device, char* name, unsigned length) {
  return Library::Instance().Read(device, {name}, [&](const GpuCall& gpu) {
    return CopyText(gpu.core.model().name, name, length);
  });
}

NVML_FUNCTION nvmlDeviceGetUUID(Device device, char* uuid, unsigned length) {
  return Library::Instance().Read(
      device, {uuid}, [&](const GpuCall& gpu) { return CopyText(gpu.core.uuid(), uuid, length); });
}

NVML_FUNCTION nvmlDeviceGetSerial(Device device, char* serial, unsigned length) {
  return Library::Instance().Read(device, {serial}, [&](const GpuCall& gpu) {
    return CopyText(MakeSerial(gpu), serial, length);
  });
}

NVML_FUNCTION nvmlDeviceGetPciInfo_v3(Device device, nvml::PciInfo* pci) {
  return Library::Instance().Read(device, {pci}, [&](const GpuCall& gpu) {
    *pci = DescribePci(gpu);
    return nvml::kSuccess;
  });
}

// The older structures end earlier, so only the fields that they have are written.
NVML_FUNCTION nvmlDeviceGetPciInfo_v2(Device device, nvml::PciInfo* pci) {
  return Library::Instance().Read(device, {pci}, [&](const GpuCall& gpu) {
    const nvml::PciInfo full = DescribePci(gpu);
    std::memcpy(static_cast<void*>(pci), &full, offsetof(nvml::PciInfo, bus_id));
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetPciInfo(Device device, nvml::PciInfo* pci) {
  return Library::Instance().Read(device, {pci}, [&](const GpuCall& gpu) {
    const nvml::PciInfo full = DescribePci(gpu);
    std::memcpy(static_cast<void*>(pci), &full, offsetof(nvml::PciInfo, pci_subsystem_id));
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetIndex(Device device, unsigned* index) {
  return Library::Instance().Read(device, {index}, [&](const GpuCall& gpu) {
    *index = gpu.index;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetMinorNumber(Device device, unsigned* minor) {
  return nvmlDeviceGetIndex(device, minor);
}

NVML_FUNCTION nvmlDeviceGetArchitecture(Device device, unsigned* architecture) {
  return Library::Instance().Read(device, {architecture}, [&](const GpuCall& gpu) {
    *architecture = NvmlArchitecture(gpu.core.model());
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetBrand(Device device, int* brand) {
  return Library::Instance().Read(device, {brand}, [&](const GpuCall& gpu) {
    *brand = FindBoard(gpu.core.model()).brand;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  return Library::Instance().Read(device, {major, minor}, [&](const GpuCall& gpu) {
    const Board& board = FindBoard(gpu.core.model());
    *major = board.compute_major;
    *minor = board.compute_minor;
    return nvml::kSuccess;
  });
}

// NVML's functions that list the processes on a GPU.
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

NVML_FUNCTION nvmlDeviceGetRunningProcessDetailList(Device device, nvml::ProcessDetailList* list) {
  return Library::Instance().Read(device, {list}, [&](const GpuCall& gpu) -> Return {
    if (list->version != nvml::StructVersion<nvml::ProcessDetailList>(1))
      return nvml::kArgumentVersionMismatch;
    if (list->mode > nvml::kProcessesMps) return nvml::kInvalidArgument;
    const bool compute = list->mode == nvml::kProcessesCompute;
    const std::vector<int> pids = compute ? gpu.core.processes() : std::vector<int>();
    const auto needed = static_cast<unsigned>(pids.size());
    const bool fits = needed == 0 || (list->entry_count >= needed && list->entries != nullptr);
    list->entry_count = needed;
    if (!fits) return nvml::kInsufficientSize;
    for (unsigned i = 0; i < needed; ++i) {
      list->entries[i] = {.pid = static_cast<unsigned>(pids[i]),
                          .used_gpu_memory = gpu.core.memory().used_bytes / needed,
                          .gpu_instance_id = nvml::kNoMigInstance,
                          .compute_instance_id = nvml::kNoMigInstance,
                          .used_protected_memory = 0};
    }
    return nvml::kSuccess;
  });
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
