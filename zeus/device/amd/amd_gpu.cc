#include "zeus/device/amd/amd_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace zeus {
namespace {

// The driver keeps caps in whole watts.
constexpr Watts kCapStep{1.0};

template <class T>
std::optional<T> ToOptional(const Result<T>& result) {
  if (!result.ok()) return std::nullopt;
  return result.value();
}

Error NoPersistence() { return {ErrorCode::kNotSupported, "amdgpu has no persistence mode"}; }

}  // namespace

AmdGpu::AmdGpu(std::string name, std::unique_ptr<amd::Board> board, const Clock& clock,
               std::optional<std::string> counting_die)
    : name_(std::move(name)),
      board_(std::move(board)),
      clock_(clock),
      counting_die_(std::move(counting_die)) {}

Status AmdGpu::CountsItself() const {
  if (!counting_die_) return Ok();
  return Error{
      ErrorCode::kNotSupported,
      fmt::format("second die of a card: {} measures and limits both dies", *counting_die_)};
}

Result<EnergyReading> AmdGpu::Energy() {
  ZEUS_RETURN_IF_ERROR(CountsItself());
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const amd::CounterSample sample, board_->Energy());
  const TimePoint now = clock_.Now();
  if (!still_.Moved(now, sample.ticks)) still_.SawPower(now, ToOptional(Power()));
  if (still_.stale()) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the energy counter of {} stands still; integrate power", name_)};
  }
  const auto total = counter_.Advance(sample.ticks);
  // The driver's time stamp counts from boot: it is no wall time.
  return EnergyReading{.total = sample.tick * static_cast<double>(total.ticks),
                       .epoch = total.epoch + still_.spells(),
                       .taken_at = std::nullopt};
}

Result<Watts> AmdGpu::Power(PowerKind kind) {
  ZEUS_RETURN_IF_ERROR(CountsItself());
  if (kind == PowerKind::kMemory)
    return Error{ErrorCode::kNotSupported, "amdgpu does not report the power of the memory alone"};
  return board_->Power(kind);
}

Result<Celsius> AmdGpu::Temperature() { return board_->Temperature(); }

Result<Utilization> AmdGpu::CurrentUtilization() { return board_->Busy(); }

Result<MemoryUse> AmdGpu::CurrentMemoryUse() { return board_->Memory(); }

Result<ThrottleReasons> AmdGpu::CurrentThrottleReasons() {
  return Error{ErrorCode::kNotSupported,
               "amdgpu has no throttle reasons that mean the same on every board"};
}

PowerLimit AmdGpu::LimitFrom(const amd::PowerCap& cap) {
  if (last_request_ && last_request_->outcome != cap.current) last_request_.reset();
  return {.range = cap.range,
          .default_limit = cap.default_limit,
          .requested = last_request_ ? last_request_->requested : cap.current,
          .enforced = cap.current};
}

Result<PowerLimit> AmdGpu::CurrentPowerLimit() {
  ZEUS_RETURN_IF_ERROR(CountsItself());
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const amd::PowerCap cap, board_->Cap());
  return LimitFrom(cap);
}

Result<PowerLimit> AmdGpu::SetPowerLimitWithoutJournal(Watts limit) {
  ZEUS_RETURN_IF_ERROR(CountsItself());
  const std::lock_guard lock(mutex_);
  ZEUS_TRY(const amd::PowerCap before, board_->Cap());
  // Some boards report a range from 0 W, but a cap of 0 W means "back to the default" there.
  // Written so that a limit that is not a number is refused too.
  if (!(limit >= std::max(before.range.min, kCapStep) && limit <= before.range.max)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("power limit {} W of {} is outside {} W to {} W", limit.value(), name_,
                             before.range.min.value(), before.range.max.value())};
  }
  if (auto set = board_->SetCap(limit); !set.ok())
    return std::move(set).error().While("set power limit of " + name_);
  ZEUS_TRY(const amd::PowerCap after, board_->Cap());
  if (after.current > limit + kCapStep) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} did not take a power limit of {} W: {} W is in force", name_,
                             limit.value(), after.current.value())};
  }
  last_request_ = LastRequest{.requested = limit, .outcome = after.current};
  return LimitFrom(after);
}

Result<std::vector<Hertz>> AmdGpu::SupportedClocks(ClockDomain domain) {
  return board_->SupportedClocks(domain);
}

Result<Hertz> AmdGpu::CurrentClock(ClockDomain domain) { return board_->Clock(domain); }

Status AmdGpu::LockClockWithoutJournal(ClockDomain domain, ClockRange range) {
  ZEUS_TRY(const std::vector<Hertz> supported, SupportedClocks(domain));
  const bool reachable = std::any_of(supported.begin(), supported.end(), [&](Hertz clock) {
    return clock >= range.min && clock <= range.max;
  });
  if (!reachable) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no {} clock of {} lies in {} MHz to {} MHz", ClockDomainName(domain),
                             name_, range.min.ToMega(), range.max.ToMega())};
  }
  auto locked = board_->LockClock(domain, range);
  if (!locked.ok())
    return std::move(locked).error().While(
        fmt::format("lock {} clock of {}", ClockDomainName(domain), name_));
  return Ok();
}

Status AmdGpu::ResetClock(ClockDomain domain) {
  auto reset = board_->ResetClock(domain);
  if (!reset.ok())
    return std::move(reset).error().While(
        fmt::format("reset {} clock of {}", ClockDomainName(domain), name_));
  return Ok();
}

Result<Persistence> AmdGpu::CurrentPersistence() { return NoPersistence(); }

Status AmdGpu::SetPersistence(Persistence /*mode*/) { return NoPersistence(); }

}  // namespace zeus
