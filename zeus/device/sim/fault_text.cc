#include "zeus/device/sim/fault_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

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

}  // namespace zeus::sim
