#include "zeus/device/sim/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::sim {
namespace {

enum class Parameter { kNone, kPower, kDuration };

struct KindName {
  std::string_view name;
  FaultKind kind;
  Parameter parameter = Parameter::kNone;
  std::string_view example = "";
};

constexpr std::array kKinds = {
    KindName{"lost", FaultKind::kLost},
    KindName{"reset", FaultKind::kDriverReload},
    KindName{"frozen", FaultKind::kCounterFrozen},
    KindName{"na-power", FaultKind::kPowerUnavailable},
    KindName{"no-permission", FaultKind::kNoPermission},
    KindName{"not-supported", FaultKind::kSetterUnsupported},
    KindName{"oob-cap", FaultKind::kOutOfBandCap, Parameter::kPower, "oob-cap:200W"},
    KindName{"slow", FaultKind::kSlowCall, Parameter::kDuration, "slow:50ms"},
    KindName{"clock-reset", FaultKind::kClockReset},
    KindName{"mig", FaultKind::kMigEnabled},
};

Error BadKind(std::string_view text) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("bad fault {}: use one of {}, clear", Quote(text), KnownFaults())};
}

// "200W" → 200, if it ends in the unit and is a positive number.
std::optional<double> NumberBefore(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  const auto number = ParseDouble(text.substr(0, text.size() - unit.size()));
  if (!number.ok() || !std::isfinite(number.value()) || number.value() <= 0) return std::nullopt;
  return number.value();
}

std::optional<Seconds> Duration(std::string_view text) {
  if (const auto milliseconds = NumberBefore(text, "ms"))
    return std::chrono::duration<double, std::milli>(*milliseconds);
  if (const auto seconds = NumberBefore(text, "s")) return Seconds(*seconds);
  return std::nullopt;
}

}  // namespace

std::string KnownFaults() {
  std::string known;
  for (const KindName& kind : kKinds)
    known += fmt::format("{}{}", known.empty() ? "" : ", ",
                         kind.example.empty() ? kind.name : kind.example);
  return known;
}

Result<Fault> ParseFault(std::string_view text) {
  const auto colon = text.find(':');
  const bool has_value = colon != std::string_view::npos;
  const std::string_view value = has_value ? text.substr(colon + 1) : "";
  for (const KindName& known : kKinds) {
    if (known.name != text.substr(0, colon)) continue;
    if (has_value != (known.parameter != Parameter::kNone)) return BadKind(text);
    Fault fault{.kind = known.kind};
    if (known.parameter == Parameter::kPower) {
      const auto watts = NumberBefore(value, "W");
      if (!watts) return BadKind(text);
      fault.cap = Watts(*watts);
    }
    if (known.parameter == Parameter::kDuration) {
      const auto delay = Duration(value);
      if (!delay) return BadKind(text);
      fault.delay = *delay;
    }
    return fault;
  }
  return BadKind(text);
}

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
