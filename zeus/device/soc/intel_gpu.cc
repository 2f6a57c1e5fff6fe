#include "zeus/device/soc/intel_gpu.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/file.h"

namespace zeus::soc {

Result<EnergyReading> IntelHwmonGpu::Energy() {
  const std::lock_guard lock(mutex_);
  auto microjoules = ReadUnsigned(parts_.energy);
  if (!microjoules.ok()) return std::move(microjoules).error().While(parts_.name);
  const auto total = counter_.Advance(microjoules.value());
  return EnergyReading{.total = Joules::FromMicro(static_cast<double>(total.ticks)),
                       .epoch = total.epoch,
                       .taken_at = std::nullopt};
}

std::optional<Seconds> IntelHwmonGpu::LongestReadInterval() const {
  // The driver widens a 32-bit register of 2^-14 J to 64 bits, but only when the file is read
  // (linux: drivers/gpu/drm/i915/i915_hwmon.c). Half a turn at more power than any card draws.
  constexpr Joules kTurn(262'144);
  constexpr Watts kHighestPower(1000);
  return kTurn / (2 * kHighestPower);
}

Result<Watts> IntelHwmonGpu::Power(PowerKind /*kind*/) {
  return Refuse("power: it is the growth of energy over time");
}

Result<Celsius> IntelHwmonGpu::Temperature() {
  if (parts_.temperature.empty()) return Refuse("temperature");
  auto millidegrees = ReadInteger(parts_.temperature);
  if (!millidegrees.ok()) return std::move(millidegrees).error().While(parts_.name);
  return Celsius::FromMilli(static_cast<double>(millidegrees.value()));
}

Result<Utilization> IntelHwmonGpu::CurrentUtilization() { return Refuse("utilization"); }

Result<MemoryUse> IntelHwmonGpu::CurrentMemoryUse() { return Refuse("memory use"); }

Result<ThrottleReasons> IntelHwmonGpu::CurrentThrottleReasons() {
  return Refuse("throttle reasons");
}

Result<PowerLimit> IntelHwmonGpu::CurrentPowerLimit() {
  if (!parts_.limit.ok()) return parts_.limit.error();
  return parts_.limit.value().Current();
}

Result<PowerLimit> IntelHwmonGpu::SetPowerLimitWithoutJournal(Watts limit) {
  if (!parts_.limit.ok()) return parts_.limit.error();
  auto set = parts_.limit.value().Set(limit);
  if (!set.ok()) return std::move(set).error().While("set power limit of " + parts_.name);
  return set;
}

Result<std::vector<Hertz>> IntelHwmonGpu::SupportedClocks(ClockDomain domain) {
  return Refuse(fmt::format("supported {} clocks", ClockDomainName(domain)));
}

Result<Hertz> IntelHwmonGpu::CurrentClock(ClockDomain domain) {
  return Refuse(fmt::format("a {} clock", ClockDomainName(domain)));
}

Status IntelHwmonGpu::LockClockWithoutJournal(ClockDomain domain, ClockRange /*range*/) {
  return Refuse(fmt::format("a lock of the {} clock", ClockDomainName(domain)));
}

Status IntelHwmonGpu::ResetClock(ClockDomain domain) {
  return Refuse(fmt::format("a lock of the {} clock", ClockDomainName(domain)));
}

Result<Persistence> IntelHwmonGpu::CurrentPersistence() { return Refuse("a persistence mode"); }

Status IntelHwmonGpu::SetPersistence(Persistence /*mode*/) { return Refuse("a persistence mode"); }

Error IntelHwmonGpu::Refuse(const std::string& what) const {
  return {ErrorCode::kNotSupported, fmt::format("{}: hwmon of the {} driver does not offer {}",
                                                parts_.name, parts_.driver, what)};
}

}  // namespace zeus::soc
