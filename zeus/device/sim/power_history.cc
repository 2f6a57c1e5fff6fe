#include "zeus/device/sim/power_history.h"

#include <algorithm>
#include <cmath>

namespace zeus::sim {

Watts StepProfile::PowerAt(Seconds time) const { return PositionAt(time) < duty ? high : low; }

Joules StepProfile::EnergyUntil(Seconds time) const {
  if (constant()) return low * time;
  // Steps spent computing up to a position that counts whole steps.
  const auto computing = [this](double position) {
    const double whole = std::floor(position);
    return whole * duty + std::min(position - whole, duty);
  };
  const double steps = computing(phase + time / period) - computing(phase);
  return low * time + (high - low) * (steps * period);
}

double StepProfile::PositionAt(Seconds time) const {
  const double position = phase + time / period;
  return position - std::floor(position);
}

StepProfile ConstantProfile(Watts power) { return {.low = power, .high = power}; }

StepProfile TwoLevelProfile(Watts mean, const PowerRange& between, Seconds period, double duty) {
  const bool gapless = duty >= 1.0 || duty <= 0.0 || period <= Seconds(0);
  if (gapless || mean >= between.max) return ConstantProfile(mean);
  const Watts high = std::min(between.min + (mean - between.min) / duty, between.max);
  const Watts low = (mean - high * duty) / (1.0 - duty);
  return {.low = low, .high = high, .period = period, .duty = duty};
}

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

Watts Regime::PowerAt(Seconds time) const {
  return profile.PowerAt(time - start) + thermal.LeakageAt(time - start);
}

Joules Regime::EnergyUntil(Seconds time) const {
  return profile.EnergyUntil(time - start) + thermal.LeakageUntil(time - start);
}

Joules Regime::EnergyBetween(Seconds begin, Seconds end) const {
  return EnergyUntil(end) - EnergyUntil(begin);
}

void PowerHistory::Push(const Regime& regime, Seconds end) {
  MakeRoom(end);
  At(size_) = regime;
  ++size_;
  end_ = end;
}

void PowerHistory::MakeRoom(Seconds now) {
  while (size_ > 1 && At(1).start < now - kReach) {
    first_ = (first_ + 1) % kCapacity;
    --size_;
  }
  if (size_ < kCapacity) return;
  const Regime& oldest = At(0);
  Regime& merged = At(1);
  const Seconds end = At(2).start;
  const Joules energy = oldest.EnergyUntil(merged.start) + merged.EnergyUntil(end);
  merged = {.start = oldest.start, .profile = ConstantProfile(energy / (end - oldest.start))};
  first_ = (first_ + 1) % kCapacity;
  --size_;
}

Joules PowerHistory::EnergyBetween(Seconds begin, Seconds end) const {
  Joules energy(0);
  Seconds to = end_;
  // From the newest back: windows are short.
  for (std::size_t i = size_; i-- > 0 && begin < to;) {
    const Regime& regime = At(i);
    const Seconds from = std::max(begin, regime.start);
    if (from < std::min(end, to)) energy += regime.EnergyBetween(from, std::min(end, to));
    to = regime.start;
  }
  const Seconds origin = size_ > 0 ? At(0).start : Seconds(0);
  if (begin < origin) energy += before_ * (std::min(end, origin) - begin);
  return energy;
}

}  // namespace zeus::sim
