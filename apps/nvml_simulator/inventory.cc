// NVML's functions that describe a board and its memory: modes, identity, error counts. A simulated
// memory makes no errors.

#include <algorithm>
#include <iterator>

#include "apps/nvml_simulator/board.h"
#include "apps/nvml_simulator/library.h"

namespace zeus::nvml_simulator {
namespace {

constexpr int kDisabled = 0;
constexpr int kEnabled = 1;
constexpr int kPowerSourceAc = 0;
constexpr unsigned kBusTypePcie = 2;
constexpr unsigned kAccountingBuffer = 4000;
constexpr unsigned kFirstInterrupt = 100;
constexpr unsigned long long kBar1Bytes = 32ULL
                                          << 30;  // Boards with resizable BARs have this much.
constexpr unsigned long long kBar1Used = 1ULL << 20;
constexpr int kEccKinds = 2;     // Corrected and uncorrected.
constexpr int kEccCounters = 2;  // Since the driver was loaded and since the board was made.
constexpr int kRetirementCauses = 2;
constexpr int kMemoryLocations = 9;
constexpr int kRestrictedApis = 2;

const Board& BoardOf(const GpuCall& gpu) { return FindBoard(gpu.core.model()); }

// Error counts exist where the memory corrects errors.
template <class Put>
Return CountNoErrors(Device device, const void* out, bool valid, Put&& put) {
  return Library::Instance().Read(device, {out}, [&](const GpuCall& gpu) -> Return {
    if (!valid) return nvml::kInvalidArgument;
    if (!BoardOf(gpu).ecc) return nvml::kNotSupported;
    put();
    return nvml::kSuccess;
  });
}

bool IsEccCounter(int kind, int counter) {
  return kind >= 0 && kind < kEccKinds && counter >= 0 && counter < kEccCounters;
}

// Boards before Ampere retire pages of memory; later ones remap rows.
bool RemapsRows(const GpuCall& gpu) {
  return gpu.core.model().architecture >= sim::Architecture::kAmpere;
}

Return CountRetiredPages(Device device, int cause, unsigned* count) {
  return Library::Instance().Read(device, {count}, [&](const GpuCall& gpu) -> Return {
    if (cause < 0 || cause >= kRetirementCauses) return nvml::kInvalidArgument;
    if (RemapsRows(gpu)) return nvml::kNotSupported;
    *count = 0;
    return nvml::kSuccess;
  });
}

// A simulated node has no NVLink fabric manager, so no GPU belongs to a cluster of a fabric.
template <class Info>
void LeaveFabric(Info& info) {
  std::fill(std::begin(info.cluster_uuid), std::end(info.cluster_uuid), 0);
  info.status = nvml::kSuccess;
  info.clique_id = 0;
  info.state = 0;
}

}  // namespace
}  // namespace zeus::nvml_simulator

using namespace zeus;
using namespace zeus::nvml_simulator;

NVML_FUNCTION nvmlDeviceGetComputeMode(Device device, int* mode) {
  return Give(device, mode, 0);  // Several processes may compute at once.
}

NVML_FUNCTION nvmlDeviceGetDisplayMode(Device device, int* mode) {
  return Give(device, mode, kDisabled);
}

NVML_FUNCTION nvmlDeviceGetDisplayActive(Device device, int* active) {
  return Give(device, active, kDisabled);
}

NVML_FUNCTION nvmlDeviceGetVbiosVersion(Device device, char* version, unsigned length) {
  return Library::Instance().Read(device, {version}, [&](const GpuCall& gpu) {
    return CopyText(BoardOf(gpu).vbios, version, length);
  });
}

NVML_FUNCTION nvmlDeviceGetBAR1MemoryInfo(Device device, nvml::Bar1Memory* memory) {
  return Give(device, memory, [](const GpuCall& gpu) -> nvml::Bar1Memory {
    const unsigned long long total =
        std::min<unsigned long long>(gpu.core.memory().total_bytes, kBar1Bytes);
    return {.total = total, .free = total - kBar1Used, .used = kBar1Used};
  });
}

// NVML's board ids grow with the PCI address; here every board has one GPU.
NVML_FUNCTION nvmlDeviceGetBoardId(Device device, unsigned* id) {
  return Give(device, id, [](const GpuCall& gpu) { return (gpu.index + 1) << 8; });
}

NVML_FUNCTION nvmlDeviceGetMultiGpuBoard(Device device, unsigned* several) {
  return Give(device, several, 0);
}

NVML_FUNCTION nvmlDeviceOnSameBoard(Device one, Device other, int* same) {
  const auto nothing = [](const GpuCall&) { return nvml::kSuccess; };
  if (const Return failure = Library::Instance().Read(other, {}, nothing);
      failure != nvml::kSuccess)
    return failure;
  return Give(one, same, one == other ? 1 : 0);
}

NVML_FUNCTION nvmlDeviceGetMemoryBusWidth(Device device, unsigned* bits) {
  return Give(device, bits, [](const GpuCall& gpu) { return BoardOf(gpu).memory_bus_bits; });
}

NVML_FUNCTION nvmlDeviceGetNumGpuCores(Device device, unsigned* cores) {
  return Give(device, cores, [](const GpuCall& gpu) { return BoardOf(gpu).cores; });
}

NVML_FUNCTION nvmlDeviceGetAttributes_v2(Device device, nvml::DeviceAttributes* attributes) {
  return Give(device, attributes, [](const GpuCall& gpu) -> nvml::DeviceAttributes {
    return {.multiprocessors = BoardOf(gpu).multiprocessors,
            .shared_copy_engines = 0,
            .shared_decoders = 0,
            .shared_encoders = 0,
            .shared_jpeg_engines = 0,
            .shared_optical_flow_engines = 0,
            .gpu_instance_slices = 0,
            .compute_instance_slices = 0,
            .memory_megabytes = gpu.core.memory().total_bytes >> 20};
  });
}

NVML_FUNCTION nvmlDeviceGetAttributes(Device device, nvml::DeviceAttributes* attributes) {
  return nvmlDeviceGetAttributes_v2(device, attributes);
}

NVML_FUNCTION nvmlDeviceGetBusType(Device device, unsigned* type) {
  return Give(device, type, kBusTypePcie);
}

NVML_FUNCTION nvmlDeviceGetIrqNum(Device device, unsigned* number) {
  return Give(device, number, [](const GpuCall& gpu) { return kFirstInterrupt + gpu.index; });
}

NVML_FUNCTION nvmlDeviceGetPowerSource(Device device, int* source) {
  return Give(device, source, kPowerSourceAc);
}

NVML_FUNCTION nvmlDeviceGetAPIRestriction(Device device, int api, int* restricted) {
  return Library::Instance().Read(device, {restricted}, [&](const GpuCall&) -> Return {
    if (api < 0 || api >= kRestrictedApis) return nvml::kInvalidArgument;
    *restricted = kEnabled;  // Only root changes clocks.
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetAccountingMode(Device device, int* mode) {
  return Give(device, mode, kDisabled);
}

NVML_FUNCTION nvmlDeviceGetAccountingBufferSize(Device device, unsigned* size) {
  return Give(device, size, kAccountingBuffer);
}

NVML_FUNCTION nvmlDeviceGetAccountingPids(Device device, unsigned* count, unsigned* /*pids*/) {
  return Give(device, count, 0);
}

// Errors of the memory.

NVML_FUNCTION nvmlDeviceGetEccMode(Device device, int* current, int* pending) {
  return Library::Instance().Read(device, {current, pending}, [&](const GpuCall& gpu) {
    *current = *pending = BoardOf(gpu).ecc ? kEnabled : kDisabled;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetDefaultEccMode(Device device, int* mode) {
  return Give(device, mode,
              [](const GpuCall& gpu) { return BoardOf(gpu).ecc ? kEnabled : kDisabled; });
}

NVML_FUNCTION nvmlDeviceGetTotalEccErrors(Device device, int kind, int counter,
                                          unsigned long long* count) {
  return CountNoErrors(device, count, IsEccCounter(kind, counter), [&] { *count = 0; });
}

NVML_FUNCTION nvmlDeviceGetDetailedEccErrors(Device device, int kind, int counter,
                                             nvml::EccErrorCounts* counts) {
  return CountNoErrors(device, counts, IsEccCounter(kind, counter), [&] { *counts = {}; });
}

// NVML's signature. NOLINTNEXTLINE(readability-function-size)
NVML_FUNCTION nvmlDeviceGetMemoryErrorCounter(Device device, int kind, int counter, int location,
                                              unsigned long long* count) {
  const bool known = location >= 0 && location < kMemoryLocations;
  return CountNoErrors(device, count, known && IsEccCounter(kind, counter), [&] { *count = 0; });
}

// NVML's signature. NOLINTNEXTLINE(readability-function-size)
NVML_FUNCTION nvmlDeviceGetRemappedRows(Device device, unsigned* corrected, unsigned* uncorrected,
                                        unsigned* pending, unsigned* failed) {
  return Library::Instance().Read(device, {corrected, uncorrected, pending, failed},
                                  [&](const GpuCall& gpu) -> Return {
                                    if (!RemapsRows(gpu)) return nvml::kNotSupported;
                                    *corrected = *uncorrected = *pending = *failed = 0;
                                    return nvml::kSuccess;
                                  });
}

NVML_FUNCTION nvmlDeviceGetRetiredPages(Device device, int cause, unsigned* count,
                                        unsigned long long* /*addresses*/) {
  return CountRetiredPages(device, cause, count);
}

// NVML's signature. NOLINTNEXTLINE(readability-function-size)
NVML_FUNCTION nvmlDeviceGetRetiredPages_v2(Device device, int cause, unsigned* count,
                                           unsigned long long* /*addresses*/,
                                           unsigned long long* /*times*/) {
  return CountRetiredPages(device, cause, count);
}

NVML_FUNCTION nvmlDeviceGetRetiredPagesPendingStatus(Device device, int* pending) {
  return Library::Instance().Read(device, {pending}, [&](const GpuCall& gpu) -> Return {
    if (RemapsRows(gpu)) return nvml::kNotSupported;
    *pending = kDisabled;
    return nvml::kSuccess;
  });
}

// The fabric between boards.

NVML_FUNCTION nvmlDeviceGetGpuFabricInfo(Device device, nvml::FabricInfo* info) {
  return Library::Instance().Read(device, {info}, [&](const GpuCall&) {
    LeaveFabric(*info);
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetGpuFabricInfoV(Device device, nvml::FabricInfoV2* info) {
  return Library::Instance().Read(device, {info}, [&](const GpuCall&) -> Return {
    const bool third = info->version == nvml::StructVersion<nvml::FabricInfoV3>(3);
    if (!third && info->version != nvml::StructVersion<nvml::FabricInfoV2>(2))
      return nvml::kArgumentVersionMismatch;
    LeaveFabric(*info);
    info->health_mask = 0;
    if (third) reinterpret_cast<nvml::FabricInfoV3*>(info)->health_summary = 0;
    return nvml::kSuccess;
  });
}
