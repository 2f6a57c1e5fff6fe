// How many GPUs there are, and who they are.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include "apps/nvml_simulator/board.h"
#include "apps/nvml_simulator/export.h"
#include "apps/nvml_simulator/library.h"
#include "apps/nvml_simulator/text.h"
#include "zeus/base/file.h"

namespace zeus::nvml_simulator {
namespace {

// GPUs sit on consecutive buses of one PCI domain.
constexpr unsigned kFirstBus = 0x10;

nvml::PciInfo PciOf(const GpuCall& gpu) {
  const Board& board = BoardOf(gpu.core.model());
  nvml::PciInfo pci{};
  pci.bus = kFirstBus + gpu.index;
  pci.pci_device_id = board.pci_device_id;
  pci.pci_subsystem_id = board.pci_device_id;
  fmt::format_to_n(pci.bus_id_legacy, sizeof(pci.bus_id_legacy) - 1, "{:04X}:{:02X}:{:02X}.0",
                   pci.domain, pci.bus, pci.device);
  fmt::format_to_n(pci.bus_id, sizeof(pci.bus_id) - 1, "{:08X}:{:02X}:{:02X}.0", pci.domain, pci.bus,
                   pci.device);
  return pci;
}

std::string SerialOf(const GpuCall& gpu) {
  return fmt::format("{:013}", (gpu.seed * sim::kMaxGpusPerNode + gpu.index) % 10'000'000'000'000);
}

// "0000:1a:00.0", "0000:1a:00" or "1a:00.0", in hexadecimal.
Result<unsigned> BusFrom(std::string_view text) {
  constexpr int kHexadecimal = 16;
  const auto last = text.rfind(':');
  if (last == std::string_view::npos) return Error{ErrorCode::kInvalidArgument, "not a PCI address"};
  const std::string_view front = text.substr(0, last);
  const auto first = front.rfind(':');
  std::uint64_t domain = 0;
  if (first != std::string_view::npos) {
    ZEUS_TRY(domain, ParseUnsigned(front.substr(0, first), kHexadecimal));
  }
  const auto bus_text = first == std::string_view::npos ? front : front.substr(first + 1);
  ZEUS_TRY(const std::uint64_t bus, ParseUnsigned(bus_text, kHexadecimal));
  std::string_view slot = text.substr(last + 1);
  slot = slot.substr(0, slot.find('.'));
  ZEUS_TRY(const std::uint64_t device, ParseUnsigned(slot, kHexadecimal));
  if (domain != 0 || device != 0 || bus < kFirstBus || bus > 0xff)
    return Error{ErrorCode::kNotFound, "no GPU there"};
  return static_cast<unsigned>(bus);
}

// Asking for a handle attaches the GPU: a lost one has none to give.
Return GiveHandle(unsigned index, Device* device) {
  const Device handle = Library::HandleOf(index);
  return Library::Instance().Read(handle, {device}, [&](const GpuCall&) {
    *device = handle;
    return nvml::kSuccess;
  });
}

// The index of the GPU for which `matches(index)` holds.
template <class Matches>
Return FindGpu(std::initializer_list<const void*> arguments, unsigned& index, Matches&& matches) {
  return Library::Instance().OnNode(arguments, [&](const sim::SharedNode& node) -> Return {
    for (index = 0; index < node.gpu_count(); ++index) {
      if (matches(node, index)) return nvml::kSuccess;
    }
    return nvml::kNotFound;
  });
}

}  // namespace
}  // namespace zeus::nvml_simulator

using namespace zeus;                  // NOLINT(google-build-using-namespace)
using namespace zeus::nvml_simulator;  // NOLINT(google-build-using-namespace)

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
  return GiveHandle(index, device);
}

NVML_FUNCTION nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_FUNCTION nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  unsigned index = 0;
  const Return found = FindGpu({uuid, device}, index, [&](const auto& node, unsigned candidate) {
    return sim::GpuUuid(node.seed(), candidate) == uuid;
  });
  return found == nvml::kSuccess ? GiveHandle(index, device) : found;
}

NVML_FUNCTION nvmlDeviceGetHandleBySerial(const char* serial, Device* device) {
  unsigned count = 0;
  if (const Return failure = nvmlDeviceGetCount_v2(&count); failure != nvml::kSuccess)
    return failure;
  if (serial == nullptr || device == nullptr) return nvml::kInvalidArgument;
  for (unsigned i = 0; i < count; ++i) {
    const Return match = Library::Instance().Read(
        Library::HandleOf(i), {}, [&](const GpuCall& gpu) -> Return {
          return SerialOf(gpu) == serial ? nvml::kSuccess : nvml::kNotFound;
        });
    if (match == nvml::kSuccess) return GiveHandle(i, device);
  }
  return nvml::kNotFound;
}

NVML_FUNCTION nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  unsigned index = 0;
  Return malformed = nvml::kSuccess;
  const Return found = FindGpu({bus_id, device}, index, [&](const auto&, unsigned candidate) {
    const auto bus = BusFrom(bus_id);
    if (!bus.ok()) malformed = ToReturn(bus.error());
    return bus.ok() && bus.value() == kFirstBus + candidate;
  });
  if (malformed != nvml::kSuccess) return malformed;
  return found == nvml::kSuccess ? GiveHandle(index, device) : found;
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
  return Library::Instance().Read(device, {uuid}, [&](const GpuCall& gpu) {
    return CopyText(sim::GpuUuid(gpu.seed, gpu.index), uuid, length);
  });
}

NVML_FUNCTION nvmlDeviceGetSerial(Device device, char* serial, unsigned length) {
  return Library::Instance().Read(
      device, {serial}, [&](const GpuCall& gpu) { return CopyText(SerialOf(gpu), serial, length); });
}

NVML_FUNCTION nvmlDeviceGetPciInfo_v3(Device device, nvml::PciInfo* pci) {
  return Library::Instance().Read(device, {pci}, [&](const GpuCall& gpu) {
    *pci = PciOf(gpu);
    return nvml::kSuccess;
  });
}

// The older structs end earlier: only the fields that each of them has are written.
NVML_FUNCTION nvmlDeviceGetPciInfo_v2(Device device, nvml::PciInfo* pci) {
  return Library::Instance().Read(device, {pci}, [&](const GpuCall& gpu) {
    const nvml::PciInfo full = PciOf(gpu);
    std::memcpy(static_cast<void*>(pci), &full, offsetof(nvml::PciInfo, bus_id));
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetPciInfo(Device device, nvml::PciInfo* pci) {
  return Library::Instance().Read(device, {pci}, [&](const GpuCall& gpu) {
    const nvml::PciInfo full = PciOf(gpu);
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
    *architecture = BoardOf(gpu.core.model()).architecture;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetBrand(Device device, int* brand) {
  return Library::Instance().Read(device, {brand}, [&](const GpuCall& gpu) {
    *brand = BoardOf(gpu.core.model()).brand;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  return Library::Instance().Read(device, {major, minor}, [&](const GpuCall& gpu) {
    const Board& board = BoardOf(gpu.core.model());
    *major = board.compute_major;
    *minor = board.compute_minor;
    return nvml::kSuccess;
  });
}
