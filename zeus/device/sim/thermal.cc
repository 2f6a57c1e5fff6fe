#include "zeus/device/sim/thermal.h"

#include <algorithm>
#include <cmath>

namespace zeus::sim {

Celsius ThermalPath::TemperatureAt(Seconds time) const {
  return settled + (start - settled) * std::exp(-(time / time_constant));
}

Watts ThermalPath::LeakageAt(Seconds time) const {
  return Watts(leakage_watts_per_kelvin * (TemperatureAt(time) - reference).value());
}

Joules ThermalPath::LeakageUntil(Seconds time) const {
  if (leakage_watts_per_kelvin == 0.0) return Joules(0);
  const Seconds transient = -std::expm1(-(time / time_constant)) * time_constant;
  const Watts steady(leakage_watts_per_kelvin * (settled - reference).value());
  const Watts extra(leakage_watts_per_kelvin * (start - settled).value());
  return steady * time + extra * transient;
}

std::optional<Seconds> ThermalPath::TimeToRise(Celsius target) const {
  if (settled <= target) return std::nullopt;
  if (start >= target) return Seconds(0);
  return time_constant * std::log((settled - start) / (settled - target));
}

std::optional<Seconds> ThermalPath::TimeToFall(Celsius target) const {
  if (settled >= target) return std::nullopt;
  if (start <= target) return Seconds(0);
  return time_constant * std::log((start - settled) / (target - settled));
}

ThermalPath Heat(const ThermalSpec& spec, Celsius ambient, Celsius start, Watts power,
                 Leakage leakage) {
  const Celsius rise(spec.kelvin_per_watt * power.value());
  if (leakage == Leakage::kInsideLimit)
    return {.start = start,
            .settled = ambient + rise,
            .time_constant = spec.time_constant,
            .reference = spec.ambient + rise};
  // dT/dt = (ambient + R (P + L (T - reference)) - T) / tau
  const double feedback = spec.kelvin_per_watt * spec.leakage_watts_per_kelvin;
  const Celsius reference = spec.ambient + rise;
  return {.start = start,
          .settled = (ambient + rise - reference * feedback) / (1.0 - feedback),
          .time_constant = spec.time_constant / (1.0 - feedback),
          .leakage_watts_per_kelvin = spec.leakage_watts_per_kelvin,
          .reference = reference};
}

}  // namespace zeus::sim
