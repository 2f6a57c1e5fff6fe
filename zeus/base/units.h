#pragma once

#include <chrono>
#include <compare>

namespace zeus {

// Seconds are std::chrono seconds: 5s, 100ms and differences of TimePoints convert implicitly.
using Seconds = std::chrono::duration<double>;

// A double that knows its SI unit. Bare numbers enter and leave only in adapters (NVML milliwatts,
// RAPL microjoules, JSON fields) and only through the named functions below.
template <class Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  static constexpr Quantity FromMilli(double value) { return Quantity(value / 1e3); }
  static constexpr Quantity FromMicro(double value) { return Quantity(value / 1e6); }
  static constexpr Quantity FromMega(double value) { return Quantity(value * 1e6); }

  constexpr double value() const { return value_; }
  constexpr double ToMilli() const { return value_ * 1e3; }
  constexpr double ToMicro() const { return value_ * 1e6; }
  constexpr double ToMega() const { return value_ / 1e6; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return a * k; }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.value_ / k); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }

 private:
  double value_ = 0.0;
};

using Joules = Quantity<struct JouleUnit>;
using Watts = Quantity<struct WattUnit>;
using Hertz = Quantity<struct HertzUnit>;
using Celsius = Quantity<struct CelsiusUnit>;

constexpr Joules operator*(Watts power, Seconds time) {
  return Joules(power.value() * time.count());
}
constexpr Joules operator*(Seconds time, Watts power) { return power * time; }
constexpr Watts operator/(Joules energy, Seconds time) {
  return Watts(energy.value() / time.count());
}
constexpr Seconds operator/(Joules energy, Watts power) {
  return Seconds(energy.value() / power.value());
}

namespace literals {
constexpr Joules operator""_J(long double v) { return Joules(static_cast<double>(v)); }
constexpr Joules operator""_J(unsigned long long v) { return Joules(static_cast<double>(v)); }
constexpr Watts operator""_W(long double v) { return Watts(static_cast<double>(v)); }
constexpr Watts operator""_W(unsigned long long v) { return Watts(static_cast<double>(v)); }
constexpr Hertz operator""_MHz(unsigned long long v) {
  return Hertz::FromMega(static_cast<double>(v));
}
constexpr Celsius operator""_degC(long double v) { return Celsius(static_cast<double>(v)); }
constexpr Celsius operator""_degC(unsigned long long v) { return Celsius(static_cast<double>(v)); }
}  // namespace literals

}  // namespace zeus
