// NVML's functions for what lies around a GPU: processors and memory of the host, other GPUs, links
// between them. A simulated node is one NUMA node with all GPUs under one host bridge.

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "apps/nvml_simulator/board.h"
#include "apps/nvml_simulator/library.h"

namespace zeus::nvml_simulator {
namespace {

constexpr int kSameGpu = 0;  // nvmlGpuTopologyLevel_t
constexpr int kSameHostBridge = 30;
constexpr int kSameSystem = 50;
constexpr int kP2pOk = 0;            // nvmlGpuP2PStatus_t
constexpr int kP2pNotSupported = 2;  // By the system.
constexpr int kP2pCapabilities = 6;
constexpr int kP2pNvlink = 2;
constexpr unsigned kNvlinkCapabilities = 6;
constexpr int kNvlinkErrorCounters = 5;
constexpr int kLinkedToSwitch = 2;  // nvmlIntNvLinkDeviceType_t
constexpr int kAffinityScopes = 2;

Return CopySet(unsigned size, unsigned long* set, unsigned long count) {
  constexpr unsigned kBits = sizeof(unsigned long) * CHAR_BIT;
  if (size == 0) return nvml::kInvalidArgument;
  if (count > static_cast<unsigned long>(size) * kBits) return nvml::kInsufficientSize;
  std::fill(set, set + size, 0);
  for (unsigned long i = 0; i < count; ++i) set[i / kBits] |= 1UL << (i % kBits);
  return nvml::kSuccess;
}

unsigned long Processors() { return static_cast<unsigned long>(::sysconf(_SC_NPROCESSORS_CONF)); }

Return CopyAffinity(Device device, unsigned size, unsigned long* set, unsigned long count) {
  return Library::Instance().Read(device, {set},
                                  [&](const GpuCall&) { return CopySet(size, set, count); });
}

// Lets the calling thread run on every processor: each is as near to the GPU as the others.
Return RunAnywhere(Device device) {
  return Library::Instance().Read(device, {}, [](const GpuCall&) -> Return {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (unsigned long i = 0; i < std::min<unsigned long>(Processors(), CPU_SETSIZE); ++i)
      CPU_SET(i, &all);
    return ::sched_setaffinity(0, sizeof(all), &all) == 0 ? nvml::kSuccess : nvml::kUnknown;
  });
}

// Runs `body` with the number of NVLinks of the board; there must be a link of that number.
template <class Body>
Return OnLink(Device device, unsigned link, const void* out, Body&& body) {
  return Library::Instance().Read(device, {out}, [&](const GpuCall& gpu) -> Return {
    const unsigned links = FindBoard(gpu.core.model()).nvlinks;
    if (links == 0) return nvml::kNotSupported;
    if (link >= links) return nvml::kInvalidArgument;
    body(gpu);
    return nvml::kSuccess;
  });
}

// Runs `body` with both GPUs; either may be lost.
template <class Body>
Return OnPair(Device one, Device other, const void* out, Body&& body) {
  unsigned links = 0;
  const auto count = [&](const GpuCall& gpu) {
    links = FindBoard(gpu.core.model()).nvlinks;
    return nvml::kSuccess;
  };
  if (const Return failure = Library::Instance().Read(other, {out}, count);
      failure != nvml::kSuccess)
    return failure;
  return Library::Instance().Read(one, {out}, [&](const GpuCall& gpu) -> Return {
    return body(std::min(links, FindBoard(gpu.core.model()).nvlinks));
  });
}

// Follows NVML's protocol for lists: `count` is the capacity on entry and the size on return. The
// caller may ask for the size alone.
Return CopyGpus(unsigned gpus, const Device* except, unsigned* count, Device* devices) {
  const unsigned needed = gpus - (except != nullptr ? 1 : 0);
  const unsigned capacity = *count;
  *count = needed;
  if (devices == nullptr || capacity == 0) return nvml::kSuccess;
  if (capacity < needed) return nvml::kInsufficientSize;
  for (unsigned i = 0; i < gpus; ++i) {
    const Device device = Library::MakeHandle(i);
    if (except == nullptr || device != *except) *devices++ = device;
  }
  return nvml::kSuccess;
}

}  // namespace
}  // namespace zeus::nvml_simulator

using namespace zeus;
using namespace zeus::nvml_simulator;

NVML_FUNCTION nvmlDeviceGetCpuAffinity(Device device, unsigned size, unsigned long* set) {
  return CopyAffinity(device, size, set, Processors());
}

NVML_FUNCTION nvmlDeviceGetCpuAffinityWithinScope(Device device, unsigned size, unsigned long* set,
                                                  int scope) {
  if (scope < 0 || scope >= kAffinityScopes) return nvml::kInvalidArgument;
  return CopyAffinity(device, size, set, Processors());
}

NVML_FUNCTION nvmlDeviceGetMemoryAffinity(Device device, unsigned size, unsigned long* set,
                                          int scope) {
  if (scope < 0 || scope >= kAffinityScopes) return nvml::kInvalidArgument;
  return CopyAffinity(device, size, set, 1);
}

NVML_FUNCTION nvmlDeviceSetCpuAffinity(Device device) { return RunAnywhere(device); }
NVML_FUNCTION nvmlDeviceClearCpuAffinity(Device device) { return RunAnywhere(device); }

NVML_FUNCTION nvmlDeviceGetNumaNodeId(Device device, unsigned* node) {
  return Give(device, node, 0);
}

NVML_FUNCTION nvmlDeviceGetTopologyCommonAncestor(Device one, Device other, int* level) {
  return OnPair(one, other, level, [&](unsigned /*links*/) {
    *level = one == other ? kSameGpu : kSameHostBridge;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetTopologyNearestGpus(Device device, int level, unsigned* count,
                                               Device* devices) {
  unsigned gpus = 0;
  const Return known = Library::Instance().OnNode({count}, [&](const sim::SharedNode& node) {
    gpus = node.gpu_count();
    return nvml::kSuccess;
  });
  if (known != nvml::kSuccess) return known;
  return Library::Instance().Read(device, {count}, [&](const GpuCall&) -> Return {
    if (level < kSameGpu || level > kSameSystem) return nvml::kInvalidArgument;
    if (level == kSameHostBridge) return CopyGpus(gpus, &device, count, devices);
    *count = 0;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlSystemGetTopologyGpuSet(unsigned processor, unsigned* count, Device* devices) {
  return Library::Instance().OnNode({count}, [&](const sim::SharedNode& node) -> Return {
    if (processor >= Processors()) return nvml::kInvalidArgument;
    return CopyGpus(node.gpu_count(), nullptr, count, devices);
  });
}

NVML_FUNCTION nvmlDeviceGetP2PStatus(Device one, Device other, int capability, int* status) {
  return OnPair(one, other, status, [&](unsigned links) -> Return {
    if (capability < 0 || capability >= kP2pCapabilities) return nvml::kInvalidArgument;
    *status = capability == kP2pNvlink && links == 0 ? kP2pNotSupported : kP2pOk;
    return nvml::kSuccess;
  });
}

// NVLinks, which a baseboard connects to a switch. They carry no traffic and make no errors.

NVML_FUNCTION nvmlDeviceGetNvLinkState(Device device, unsigned link, int* active) {
  return OnLink(device, link, active, [&](const GpuCall&) { *active = 1; });
}

NVML_FUNCTION nvmlDeviceGetNvLinkVersion(Device device, unsigned link, unsigned* version) {
  return OnLink(device, link, version, [&](const GpuCall& gpu) {
    *version = gpu.core.model().architecture == sim::Architecture::kHopper ? 4 : 3;
  });
}

NVML_FUNCTION nvmlDeviceGetNvLinkCapability(Device device, unsigned link, unsigned capability,
                                            unsigned* supported) {
  if (capability >= kNvlinkCapabilities) return nvml::kInvalidArgument;
  return OnLink(device, link, supported, [&](const GpuCall&) { *supported = 1; });
}

NVML_FUNCTION nvmlDeviceGetNvLinkErrorCounter(Device device, unsigned link, int counter,
                                              unsigned long long* errors) {
  if (counter < 0 || counter >= kNvlinkErrorCounters) return nvml::kInvalidArgument;
  return OnLink(device, link, errors, [&](const GpuCall&) { *errors = 0; });
}

NVML_FUNCTION nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, int* type) {
  return OnLink(device, link, type, [&](const GpuCall&) { *type = kLinkedToSwitch; });
}

// S-class units and host interface cards: no simulated node has one.

NVML_FUNCTION nvmlUnitGetCount(unsigned* count) {
  return Library::Instance().OnNode({count}, [&](const auto&) {
    *count = 0;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlSystemGetHicVersion(unsigned* count, void* /*entries*/) {
  return nvmlUnitGetCount(count);
}
