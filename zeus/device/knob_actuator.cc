#include "zeus/device/knob_actuator.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeus {

std::string KnobName(KnobKind kind, const std::string& device) {
  if (!IsClock(kind)) return "power limit of " + device;
  const char* const domain = kind == KnobKind::kGraphicsClock ? "graphics" : "memory";
  return fmt::format("{} clock of {}", domain, device);
}

std::string ToText(const KnobState& state) {
  return state.setting ? ToText(*state.setting) : "not locked";
}

Result<KnobReturn> PutBackIfOurs(KnobActuator& actuator, const KnobState& before,
                                 const std::vector<Setting>& ours) {
  if (!ours.empty() && before.setting) {
    ZEUS_TRY(const KnobState present, actuator.Read());
    const auto is_present = [&](const Setting& setting) {
      return present.setting && SameSetting(*present.setting, setting);
    };
    const bool foreign =
        present.setting && !is_present(*before.setting) && std::ranges::none_of(ours, is_present);
    if (foreign) {
      // The persistence mode is not the concern of whoever set it.
      ZEUS_RETURN_IF_ERROR(actuator.PutBack({.persistence = before.persistence}));
      return KnobReturn::kNotOurs;
    }
    if (is_present(*before.setting) && !before.persistence) return KnobReturn::kPutBack;
  }
  ZEUS_RETURN_IF_ERROR(actuator.PutBack(before));
  return KnobReturn::kPutBack;
}

}  // namespace zeus
