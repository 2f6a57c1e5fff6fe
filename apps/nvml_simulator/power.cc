// NVML's functions for power, energy and power limits.

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "apps/nvml_simulator/library.h"

using namespace zeus;
using namespace zeus::nvml_simulator;

namespace {

template <class Select>
Return ReadLimit(Device device, unsigned* limit, Select&& select) {
  return Library::Instance().Read(device, {limit}, [&](const GpuCall& gpu) {
    *limit = ToMilliwatts(select(gpu.core.power_limit()));
    return nvml::kSuccess;
  });
}

}  // namespace

NVML_FUNCTION nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
  return Library::Instance().Read(device, {milliwatts}, [&](const GpuCall& gpu) -> Return {
    // As NVML documents it, this is the average over 1 s on parts that have one, and over a short
    // window on others.
    const bool average = gpu.core.model().sensors.has_one_second_average;
    return Answer(gpu.Power(average ? PowerKind::kOneSecondAverage : PowerKind::kInstant),
                  milliwatts, ToMilliwatts);
  });
}

NVML_FUNCTION nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* millijoules) {
  return Library::Instance().Read(device, {millijoules}, [&](const GpuCall& gpu) -> Return {
    return Answer(gpu.core.counter_millijoules(), millijoules, [](auto value) { return value; });
  });
}

NVML_FUNCTION nvmlDeviceGetPowerManagementMode(Device device, int* mode) {
  return Library::Instance().Read(device, {mode}, [&](const GpuCall&) {
    *mode = 1;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetPowerManagementLimit(Device device, unsigned* limit) {
  return ReadLimit(device, limit, [](const PowerLimit& now) { return now.requested; });
}

NVML_FUNCTION nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned* limit) {
  return ReadLimit(device, limit, [](const PowerLimit& now) { return now.default_limit; });
}

NVML_FUNCTION nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* limit) {
  return ReadLimit(device, limit, [](const PowerLimit& now) { return now.enforced; });
}

NVML_FUNCTION nvmlDeviceGetPowerManagementLimitConstraints(Device device, unsigned* min,
                                                           unsigned* max) {
  return Library::Instance().Read(device, {min, max}, [&](const GpuCall& gpu) {
    const PowerRange range = gpu.core.power_limit().range;
    *min = ToMilliwatts(range.min);
    *max = ToMilliwatts(range.max);
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceSetPowerManagementLimit(Device device, unsigned milliwatts) {
  return Library::Instance().Write(
      device, [&](sim::GpuCore& core) { return core.SetPowerLimit(Watts::FromMilli(milliwatts)); });
}

NVML_FUNCTION nvmlDeviceSetPowerManagementLimit_v2(Device device, nvml::PowerValueV2* value) {
  const auto nothing = [](const sim::SharedNode&) { return nvml::kSuccess; };
  if (const Return failure = Library::Instance().OnNode({value}, nothing);
      failure != nvml::kSuccess)
    return failure;
  if (value->version != nvml::StructVersion<nvml::PowerValueV2>(2))
    return nvml::kArgumentVersionMismatch;
  if (value->power_scope != nvml::kScopeGpu) return nvml::kNotSupported;
  return nvmlDeviceSetPowerManagementLimit(device, value->power_value_milliwatts);
}

NVML_FUNCTION nvmlDeviceGetPersistenceMode(Device device, int* mode) {
  return Library::Instance().Read(device, {mode}, [&](const GpuCall& gpu) {
    *mode = gpu.core.persistence() == Persistence::kOn ? 1 : 0;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceSetPersistenceMode(Device device, int mode) {
  if (mode != 0 && mode != 1) return nvml::kInvalidArgument;
  return Library::Instance().Write(device, [&](sim::GpuCore& core) {
    core.SetPersistence(mode == 1 ? Persistence::kOn : Persistence::kOff);
    return Ok();
  });
}

// NVML's functions for clocks: present values, locks, and reasons for throttling.
namespace zeus::nvml_simulator {
namespace {

constexpr int kClockIdCurrent = 0;
constexpr int kClockIdApplications = 1;
constexpr int kClockIdApplicationsDefault = 2;
constexpr int kClockIdCustomerBoostMax = 3;

bool IsClockType(int type) { return type >= nvml::kClockGraphics && type <= nvml::kClockVideo; }

// SM and video clocks follow the graphics clock, so they map to it.
ClockDomain ToDomain(int type) {
  return type == nvml::kClockMemory ? ClockDomain::kMemory : ClockDomain::kGraphics;
}

Hertz MaxClock(const sim::GpuModel& model, ClockDomain domain) {
  return domain == ClockDomain::kMemory ? model.memory_clock : model.graphics_clock.max;
}

// Follows NVML's protocol for lists: `count` is the capacity on entry and the required size on
// return. Clocks are listed from the highest.
Return CopyClocks(std::span<const Hertz> ascending, unsigned* count, unsigned* megahertz) {
  const auto needed = static_cast<unsigned>(ascending.size());
  if (*count < needed || megahertz == nullptr) {
    *count = needed;
    return nvml::kInsufficientSize;
  }
  *count = needed;
  for (unsigned i = 0; i < needed; ++i) megahertz[i] = ToMegahertz(ascending[needed - 1 - i]);
  return nvml::kSuccess;
}

bool IsSymbolic(unsigned megahertz) {
  return megahertz == nvml::kClockLimitTdp || megahertz == nvml::kClockLimitUnlimited;
}

Return Lock(Device device, ClockDomain domain, unsigned min, unsigned max) {
  if (IsSymbolic(min) != IsSymbolic(max)) return nvml::kInvalidArgument;
  return Library::Instance().Write(device, [&](sim::GpuCore& core) -> Status {
    if (IsSymbolic(min)) return core.ResetClock(domain);
    return core.LockClock(domain, {.min = Hertz::FromMega(min), .max = Hertz::FromMega(max)});
  });
}

Return Reset(Device device, ClockDomain domain) {
  return Library::Instance().Write(device,
                                   [&](sim::GpuCore& core) { return core.ResetClock(domain); });
}

unsigned long long ReasonBits(const ThrottleReasons& throttle) {
  unsigned long long reasons = 0;
  if (throttle.idle) reasons |= nvml::kReasonIdle;
  if (throttle.power_cap) reasons |= nvml::kReasonSoftwarePowerCap;
  if (throttle.thermal) reasons |= nvml::kReasonSoftwareThermal;
  if (throttle.locked_clock) reasons |= nvml::kReasonApplicationsClocks;
  if (throttle.other) reasons |= nvml::kReasonHardwareSlowdown;
  return reasons;
}

// How long the clock was below the highest for the reason that NVML calls a policy; nothing for a
// policy that a simulated GPU does not follow.
std::optional<Seconds> TimeUnder(int policy, const sim::SlowTime& slow) {
  switch (policy) {
    case nvml::kPolicyPower:
      return slow.power;
    case nvml::kPolicyThermal:
      return slow.thermal;
    case nvml::kPolicyReliability:
      return Seconds(0);
    case nvml::kPolicyAllApplicationClocks:
      return slow.power + slow.thermal;
    case nvml::kPolicyAllBaseClocks:
      return slow.power + slow.thermal + slow.lock;
    default:
      return std::nullopt;
  }
}

}  // namespace
}  // namespace zeus::nvml_simulator

NVML_FUNCTION nvmlDeviceGetClockInfo(Device device, int type, unsigned* megahertz) {
  return Library::Instance().Read(device, {megahertz}, [&](const GpuCall& gpu) -> Return {
    if (!IsClockType(type)) return nvml::kInvalidArgument;
    *megahertz = ToMegahertz(gpu.core.clock(ToDomain(type)));
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetMaxClockInfo(Device device, int type, unsigned* megahertz) {
  return Library::Instance().Read(device, {megahertz}, [&](const GpuCall& gpu) -> Return {
    if (!IsClockType(type)) return nvml::kInvalidArgument;
    *megahertz = ToMegahertz(MaxClock(gpu.core.model(), ToDomain(type)));
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetDefaultApplicationsClock(Device device, int type, unsigned* megahertz) {
  return nvmlDeviceGetMaxClockInfo(device, type, megahertz);
}

NVML_FUNCTION nvmlDeviceGetMaxCustomerBoostClock(Device device, int type, unsigned* megahertz) {
  return nvmlDeviceGetMaxClockInfo(device, type, megahertz);
}

// A simulated GPU has one setting for locked clocks and applications clocks: the newer wins.
NVML_FUNCTION nvmlDeviceGetApplicationsClock(Device device, int type, unsigned* megahertz) {
  return Library::Instance().Read(device, {megahertz}, [&](const GpuCall& gpu) -> Return {
    if (!IsClockType(type)) return nvml::kInvalidArgument;
    const ClockDomain domain = ToDomain(type);
    const Hertz highest = MaxClock(gpu.core.model(), domain);
    const auto& lock = gpu.core.requested_clock_lock();
    const bool lowered = domain == ClockDomain::kGraphics && lock.has_value();
    *megahertz = ToMegahertz(lowered ? std::min(lock->max, highest) : highest);
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetClock(Device device, int type, int id, unsigned* megahertz) {
  if (id == kClockIdCurrent) return nvmlDeviceGetClockInfo(device, type, megahertz);
  if (id == kClockIdCustomerBoostMax) return nvmlDeviceGetMaxClockInfo(device, type, megahertz);
  if (id == kClockIdApplications) return nvmlDeviceGetApplicationsClock(device, type, megahertz);
  if (id == kClockIdApplicationsDefault)
    return nvmlDeviceGetDefaultApplicationsClock(device, type, megahertz);
  return Library::Instance().Read(device, {megahertz},
                                  [](const GpuCall&) { return nvml::kInvalidArgument; });
}

NVML_FUNCTION nvmlDeviceSetApplicationsClocks(Device device, unsigned memory, unsigned graphics) {
  return Library::Instance().Write(device, [&](sim::GpuCore& core) -> Status {
    if (ToMegahertz(core.model().memory_clock) != memory)
      return Error{ErrorCode::kInvalidArgument, "not a supported memory clock"};
    return core.SetApplicationsClock(Hertz::FromMega(graphics));
  });
}

NVML_FUNCTION nvmlDeviceResetApplicationsClocks(Device device) {
  return Library::Instance().Write(
      device, [](sim::GpuCore& core) { return core.ResetApplicationsClock(); });
}

NVML_FUNCTION nvmlDeviceGetViolationStatus(Device device, int policy,
                                           nvml::ViolationTime* violation) {
  return Library::Instance().Read(device, {violation}, [&](const GpuCall& gpu) -> Return {
    if (policy < 0 || policy > nvml::kPolicyAllBaseClocks) return nvml::kInvalidArgument;
    const auto time = TimeUnder(policy, gpu.core.slow_time());
    if (!time) return nvml::kNotSupported;
    *violation = {.reference_time = static_cast<unsigned long long>(gpu.Timestamp()),
                  .violation_time = static_cast<unsigned long long>(time->count() * 1e9)};
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetSupportedMemoryClocks(Device device, unsigned* count,
                                                 unsigned* megahertz) {
  return Library::Instance().Read(device, {count}, [&](const GpuCall& gpu) {
    return CopyClocks(gpu.core.supported_clocks(ClockDomain::kMemory), count, megahertz);
  });
}

NVML_FUNCTION nvmlDeviceGetSupportedGraphicsClocks(Device device, unsigned memory_megahertz,
                                                   unsigned* count, unsigned* megahertz) {
  return Library::Instance().Read(device, {count}, [&](const GpuCall& gpu) -> Return {
    bool known = false;
    for (const Hertz clock : gpu.core.supported_clocks(ClockDomain::kMemory))
      known = known || ToMegahertz(clock) == memory_megahertz;
    if (!known) return nvml::kNotFound;
    return CopyClocks(gpu.core.supported_clocks(ClockDomain::kGraphics), count, megahertz);
  });
}

NVML_FUNCTION nvmlDeviceSetGpuLockedClocks(Device device, unsigned min, unsigned max) {
  return Lock(device, ClockDomain::kGraphics, min, max);
}

NVML_FUNCTION nvmlDeviceResetGpuLockedClocks(Device device) {
  return Reset(device, ClockDomain::kGraphics);
}

NVML_FUNCTION nvmlDeviceSetMemoryLockedClocks(Device device, unsigned min, unsigned max) {
  return Lock(device, ClockDomain::kMemory, min, max);
}

NVML_FUNCTION nvmlDeviceResetMemoryLockedClocks(Device device) {
  return Reset(device, ClockDomain::kMemory);
}

NVML_FUNCTION nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* reasons) {
  return Library::Instance().Read(device, {reasons}, [&](const GpuCall& gpu) {
    *reasons = ReasonBits(gpu.core.throttle());
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetCurrentClocksThrottleReasons(Device device,
                                                        unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

NVML_FUNCTION nvmlDeviceGetSupportedClocksEventReasons(Device device, unsigned long long* reasons) {
  return Library::Instance().Read(device, {reasons}, [&](const GpuCall&) {
    *reasons = nvml::kReasonIdle | nvml::kReasonApplicationsClocks | nvml::kReasonSoftwarePowerCap |
               nvml::kReasonHardwareSlowdown | nvml::kReasonSoftwareThermal;
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetSupportedClocksThrottleReasons(Device device,
                                                          unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

NVML_FUNCTION nvmlDeviceGetPerformanceState(Device device, int* state) {
  return Library::Instance().Read(device, {state}, [&](const GpuCall& gpu) {
    *state = gpu.performance_state();
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetSupportedPerformanceStates(Device device, int* states, unsigned bytes) {
  return Library::Instance().Read(device, {states}, [&](const GpuCall&) -> Return {
    constexpr std::array<int, 2> kStates = {nvml::kPerformanceStateMax,
                                            nvml::kPerformanceStateIdle};
    const std::span<int> places(states, bytes / sizeof(int));
    if (places.size() < kStates.size()) return nvml::kInsufficientSize;
    std::fill(places.begin(), places.end(), nvml::kPerformanceStateUnknown);
    std::copy(kStates.begin(), kStates.end(), places.begin());
    return nvml::kSuccess;
  });
}

NVML_FUNCTION nvmlDeviceGetPowerState(Device device, int* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}
