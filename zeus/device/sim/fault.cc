#include "zeus/device/sim/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace zeus::sim {

bool HitsCalls(FaultKind kind) {
  switch (kind) {
    case FaultKind::kLost:
    case FaultKind::kPowerUnavailable:
    case FaultKind::kNoPermission:
    case FaultKind::kSetterUnsupported:
    case FaultKind::kSlowCall:
      return true;
    case FaultKind::kDriverReload:
    case FaultKind::kCounterFrozen:
    case FaultKind::kOutOfBandCap:
    case FaultKind::kClockReset:
    case FaultKind::kMigEnabled:
      return false;
  }
  return false;
}

Status CheckFault(const Fault& fault) {
  const auto refuse = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  };
  // Written so that what is not a number is refused too.
  if (fault.kind == FaultKind::kOutOfBandCap && !(fault.cap >= kMinCap && fault.cap <= kMaxCap))
    return refuse(fmt::format("an out-of-band cap is {} to {} W, not {} W", kMinCap.value(),
                              kMaxCap.value(), fault.cap.value()));
  if (fault.kind == FaultKind::kSlowCall &&
      !(fault.delay >= Seconds(0) && fault.delay <= kMaxDelay))
    return refuse(fmt::format("a call is slower by 0 to {} s, not by {} s", kMaxDelay.count(),
                              fault.delay.count()));
  if (!std::isfinite(fault.at.count())) return refuse("a fault begins at a finite time");
  if (!(fault.probability > 0 && fault.probability <= 1))
    return refuse(fmt::format("the probability of a fault is above 0 and at most 1, not {}",
                              fault.probability));
  if (fault.probability < 1 && !HitsCalls(fault.kind))
    return refuse("only faults that concern calls have a probability");
  return Ok();
}

bool FaultSchedule::Add(const Fault& fault) {
  if (size_ == faults_.size()) return false;
  faults_[size_++] = fault;
  return true;
}

std::optional<Fault> FaultSchedule::Active(FaultKind kind, Seconds now) const {
  std::optional<Fault> active;
  for (std::size_t i = 0; i < size_; ++i) {
    const Fault& fault = faults_[i];
    if (fault.kind != kind || fault.at > now) continue;
    if (!active || fault.at >= active->at) active = fault;
  }
  return active;
}

bool FaultSchedule::TakeDue(FaultKind kind, Seconds now) {
  for (std::size_t i = 0; i < size_; ++i) {
    if (faults_[i].kind != kind || faults_[i].at > now) continue;
    Remove(i);
    return true;
  }
  return false;
}

Seconds FaultSchedule::NextAfter(Seconds now) const {
  Seconds next(std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < size_; ++i)
    if (faults_[i].at > now) next = std::min(next, faults_[i].at);
  return next;
}

void FaultSchedule::Remove(std::size_t i) {
  std::copy(faults_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
            faults_.begin() + static_cast<std::ptrdiff_t>(size_),
            faults_.begin() + static_cast<std::ptrdiff_t>(i));
  --size_;
}

}  // namespace zeus::sim
