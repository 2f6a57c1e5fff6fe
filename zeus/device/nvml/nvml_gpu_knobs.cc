// The knobs of NvmlGpu. NVML may accept a value and not apply it, so each is read back.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/device/nvml/nvml_error.h"
#include "zeus/device/nvml/nvml_gpu.h"

namespace zeus::nvml {
namespace {

// Reads a list of which NVML tells the length only after it was too short.
template <class Function>
Result<std::vector<Hertz>> ReadClockList(const Function& read, const std::string& doing) {
  constexpr unsigned kUsual = 256;
  constexpr unsigned kAbsurd = 65536;
  std::vector<unsigned> megahertz(kUsual);
  auto count = static_cast<unsigned>(megahertz.size());
  Return code = read(&count, megahertz.data());
  if (code == kInsufficientSize && count <= kAbsurd) {
    megahertz.resize(count);
    code = read(&count, megahertz.data());
  }
  if (code != kSuccess) return NvmlError(code, doing);
  megahertz.resize(std::min<std::size_t>(count, megahertz.size()));
  std::ranges::sort(megahertz);
  const auto repeated = std::ranges::unique(megahertz);
  megahertz.erase(repeated.begin(), repeated.end());
  if (megahertz.empty())
    return Error{ErrorCode::kNotSupported, doing + ": the driver lists no clock"};
  std::vector<Hertz> clocks;
  clocks.reserve(megahertz.size());
  for (const unsigned clock : megahertz) clocks.push_back(Hertz::FromMega(clock));
  return clocks;
}

unsigned ToMegahertz(Hertz clock) {
  return static_cast<unsigned>(std::llround(std::clamp(clock.ToMega(), 0.0, 1e6)));
}

}  // namespace

Result<LimitBounds> NvmlGpu::Bounds(const Target& target) const {
  const bool settled =
      bounds_at_start_.ok() || bounds_at_start_.error().code == ErrorCode::kNotSupported;
  return settled ? bounds_at_start_ : bounds_.Read(target);
}

Result<PowerLimit> NvmlGpu::ReadPowerLimit(const Target& target) const {
  ZEUS_TRY(const LimitBounds bounds, Bounds(target));
  const FieldBatch batch = channels_.ReadAll(target);
  ZEUS_TRY(const Sample requested, batch[Channel::kRequestedLimit]);
  ZEUS_TRY(const Sample enforced, batch[Channel::kEnforcedLimit]);
  return PowerLimit{
      .range = {.min = Watts::FromMilli(bounds.min), .max = Watts::FromMilli(bounds.max)},
      .default_limit = Watts::FromMilli(bounds.default_limit),
      .requested = Watts::FromMilli(static_cast<double>(requested.value)),
      .enforced = Watts::FromMilli(static_cast<double>(enforced.value))};
}

Result<PowerLimit> NvmlGpu::CurrentPowerLimit() {
  ZEUS_TRY(const Target target, CurrentTarget());
  return ReadPowerLimit(target);
}

Result<PowerLimit> NvmlGpu::SetPowerLimitWithoutJournal(Watts limit) {
  ZEUS_TRY(const Target target, CurrentTarget());
  // Also proves that the result can be read back before anything is changed.
  ZEUS_TRY(const PowerLimit before, ReadPowerLimit(target));
  const PowerRange range = before.range;
  if (!(limit >= range.min && limit <= range.max)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: a power limit of {} W is outside {} W to {} W", name_,
                             limit.value(), range.min.value(), range.max.value())};
  }
  const auto milliwatts = static_cast<unsigned>(std::llround(limit.ToMilli()));
  const std::string doing = fmt::format("{}: set power limit to {} W", name_, limit.value());
  ZEUS_RETURN_IF_ERROR(
      ToStatus(Call(target.api.set_power_limit, target.device, milliwatts), doing));

  auto after = ReadPowerLimit(target);
  if (!after.ok()) return std::move(after).error().While(doing + " (reading it back)");
  if (after.value().requested != Watts::FromMilli(milliwatts)) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}: the driver accepted it but the limit is now {} W", doing,
                             after.value().requested.value())};
  }
  return after;
}

Result<std::vector<Hertz>> NvmlGpu::SupportedClocks(ClockDomain domain) {
  ZEUS_TRY(const Target target, CurrentTarget());
  const NvmlApi& api = target.api;
  const auto read_memory = [&](unsigned* count, unsigned* clocks) {
    return Call(api.get_memory_clocks, target.device, count, clocks);
  };
  auto memory = ReadClockList(read_memory, Doing("list memory clocks"));
  if (domain == ClockDomain::kMemory || !memory.ok()) return memory;

  const unsigned highest = ToMegahertz(memory.value().back());
  const auto read_graphics = [&](unsigned* count, unsigned* clocks) {
    return Call(api.get_graphics_clocks, target.device, highest, count, clocks);
  };
  return ReadClockList(read_graphics, Doing("list graphics clocks"));
}

Status NvmlGpu::LockClockWithoutJournal(ClockDomain domain, ClockRange range) {
  if (!(range.min <= range.max)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: a clock range from {} MHz to {} MHz is empty", name_,
                             range.min.ToMega(), range.max.ToMega())};
  }
  const std::string doing =
      fmt::format("{}: lock {} clock to {}-{} MHz", name_, ClockDomainName(domain),
                  range.min.ToMega(), range.max.ToMega());
  // Boards that keep their list to themselves can often be locked all the same.
  const auto supported = SupportedClocks(domain);
  if (!supported.ok() && supported.error().code != ErrorCode::kNotSupported)
    return supported.error().While(doing);
  if (supported.ok()) {
    const auto inside = [&](Hertz clock) { return clock >= range.min && clock <= range.max; };
    const std::vector<Hertz>& clocks = supported.value();
    if (std::ranges::none_of(clocks, inside)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: no supported clock lies inside; they go from {} to {} MHz",
                               doing, clocks.front().ToMega(), clocks.back().ToMega())};
    }
  }
  ZEUS_TRY(const Target target, CurrentTarget());
  const auto set = domain == ClockDomain::kGraphics ? target.api.set_graphics_clock_lock
                                                    : target.api.set_memory_clock_lock;
  return ToStatus(Call(set, target.device, ToMegahertz(range.min), ToMegahertz(range.max)), doing);
}

Status NvmlGpu::ResetClock(ClockDomain domain) {
  ZEUS_TRY(const Target target, CurrentTarget());
  const auto reset = domain == ClockDomain::kGraphics ? target.api.reset_graphics_clock_lock
                                                      : target.api.reset_memory_clock_lock;
  return ToStatus(Call(reset, target.device),
                  fmt::format("{}: reset {} clock", name_, ClockDomainName(domain)));
}

Result<Persistence> NvmlGpu::CurrentPersistence() {
  ZEUS_TRY(const Target target, CurrentTarget());
  int mode = 0;
  ZEUS_RETURN_IF_ERROR(ToStatus(Call(target.api.get_persistence, target.device, &mode),
                                Doing("read persistence mode")));
  return mode == 0 ? Persistence::kOff : Persistence::kOn;
}

Status NvmlGpu::SetPersistence(Persistence mode) {
  ZEUS_TRY(const Target target, CurrentTarget());
  const std::string doing = Doing("set persistence mode");
  ZEUS_RETURN_IF_ERROR(ToStatus(
      Call(target.api.set_persistence, target.device, mode == Persistence::kOn ? 1 : 0), doing));
  ZEUS_TRY(const Persistence after, CurrentPersistence());
  if (after == mode) return Ok();
  return Error{ErrorCode::kUnavailable, doing + ": the driver accepted it but did not change it"};
}

}  // namespace zeus::nvml
