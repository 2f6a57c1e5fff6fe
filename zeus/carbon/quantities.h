#pragma once

#include <string>

#include "zeus/base/units.h"

// The units of emissions and bills.
namespace zeus {

// The bridge between physics (joules) and grids and bills (kilowatt-hours), here and nowhere else.
using KilowattHours = Quantity<struct KilowattHourUnit>;
inline constexpr Joules kOneKilowattHour{3.6e6};
constexpr KilowattHours ToKilowattHours(Joules energy) {
  return KilowattHours(energy / kOneKilowattHour);
}
constexpr Joules ToJoules(KilowattHours energy) { return energy.value() * kOneKilowattHour; }

using GramsCo2e = Quantity<struct GramCo2eUnit>;  // All greenhouse gases, as carbon dioxide.
using CarbonIntensity = Quantity<struct GramCo2ePerKilowattHourUnit>;

constexpr GramsCo2e operator*(Joules energy, CarbonIntensity intensity) {
  return GramsCo2e(ToKilowattHours(energy).value() * intensity.value());
}
constexpr GramsCo2e operator*(CarbonIntensity intensity, Joules energy) {
  return energy * intensity;
}

// Amounts of money; the currency stands beside them.
using Money = Quantity<struct CurrencyUnit>;
using UnitPrice = Quantity<struct CurrencyPerKilowattHourUnit>;

constexpr Money operator*(Joules energy, UnitPrice price) {
  return Money(ToKilowattHours(energy).value() * price.value());
}
constexpr Money operator*(UnitPrice price, Joules energy) { return energy * price; }

}  // namespace zeus
