#include "apps/zeus/llm/clock_knob.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace zeus::cli {

Result<std::unique_ptr<GuardedClockKnob>> GuardedClockKnob::Make(const std::vector<Gpu*>& gpus,
                                                                 Ceiling ceiling) {
  if (gpus.empty())
    return InvalidArgument("a governor needs the GPUs of its engine: name them with --gpus");
  std::unique_ptr<GuardedClockKnob> knob(new GuardedClockKnob);
  knob->gpus_ = gpus;
  for (Gpu* const gpu : gpus) {
    ZEUS_TRY(auto guarded, GuardedKnob::Of(KnobKind::kGraphicsClock, *gpu, ceiling));
    knob->knobs_.push_back(std::move(guarded));
  }
  knob->name_ = knob->knobs_.front()->name();
  if (gpus.size() > 1) knob->name_ += " to " + gpus.back()->name();
  ZEUS_TRY(const std::vector<Hertz> supported, knob->Supported());
  if (supported.size() < 2)
    return Error{ErrorCode::kNotSupported,
                 knob->name_ + " cannot be locked: a governor needs at least two clocks"};
  return knob;
}

Result<std::vector<Hertz>> GuardedClockKnob::Supported() {
  constexpr Hertz kEvery{1.0};
  std::vector<Hertz> common;
  for (const auto& knob : knobs_) {
    ZEUS_TRY(const std::vector<Setting> settings, knob->Settings(kEvery));
    std::vector<Hertz> clocks;
    for (const Setting& setting : settings) clocks.push_back(std::get<Hertz>(setting));
    std::ranges::sort(clocks);
    if (&knob == &knobs_.front()) {
      common = std::move(clocks);
      continue;
    }
    std::vector<Hertz> both;
    std::ranges::set_intersection(common, clocks, std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

Result<Hertz> GuardedClockKnob::Present() {
  std::optional<Hertz> slowest;
  for (Gpu* const gpu : gpus_) {
    ZEUS_TRY(const Hertz clock, gpu->CurrentClock(ClockDomain::kGraphics));
    slowest = std::min(slowest.value_or(clock), clock);
  }
  return *slowest;
}

Result<bool> GuardedClockKnob::IsOurs() {
  // No driver tells who locked a clock. After a Lock() the governor itself notices a clock above
  // its own, once the reading has had time to follow.
  if (locked_) return true;
  bool all_busy = true;
  for (Gpu* const gpu : gpus_) {
    const auto reasons = gpu->CurrentThrottleReasons();
    if (!reasons.ok()) continue;  // Such a GPU never says.
    if (reasons.value().idle) all_busy = false;
    if (reasons.value().idle || !reasons.value().locked_clock) continue;
    ZEUS_TRY(const Hertz clock, gpu->CurrentClock(ClockDomain::kGraphics));
    constexpr double kSameClock = 0.01;
    if (disowned_ && std::abs(clock / *disowned_ - 1) < kSameClock) continue;
    return Error{ErrorCode::kUnavailable,
                 fmt::format("another program has locked the graphics clock of {} to {}: unlock it "
                             "with nvidia-smi -rgc, or run without --slo",
                             gpu->name(), ToText(clock))};
  }
  return all_busy;
}

void GuardedClockKnob::Disown() {
  if (locked_) disowned_ = std::exchange(locked_, std::nullopt);
}

Status GuardedClockKnob::CheckPermission() {
  for (Gpu* const gpu : gpus_) {
    const auto limit = gpu->CurrentPowerLimit();
    if (!limit.ok()) continue;
    // The driver asks for the same privilege to lock a clock, which would change something.
    const auto set = gpu->SetPowerLimitWithoutJournal(limit.value().requested);
    if (!set.ok() && set.error().code == ErrorCode::kPermissionDenied) return set.error();
  }
  return Ok();
}

Status GuardedClockKnob::Lock(Hertz clock) {
  for (const auto& knob : knobs_)
    if (Status set = knob->Set(clock); !set.ok()) {
      // The first reason is the one to report; what Restore() cannot do it logs.
      (void)Release();
      return set;
    }
  locked_ = clock;
  disowned_.reset();
  return Ok();
}

Status GuardedClockKnob::Release() {
  locked_.reset();
  disowned_.reset();
  Status first = Ok();
  for (const auto& knob : knobs_)
    if (Status restored = knob->Restore(); !restored.ok() && first.ok()) first = restored;
  return first;
}

}  // namespace zeus::cli
