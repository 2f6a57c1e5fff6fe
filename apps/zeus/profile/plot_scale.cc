#include "apps/zeus/profile/plot_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace zeus::cli {
namespace {

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// One unit for a whole curve.
void Scale(Curve& curve, const char* unit) {
  struct Prefix {
    double scale;
    const char* text;
  };
  constexpr std::array kPrefixes = {Prefix{1e3, "k"}, Prefix{1, ""}, Prefix{1e-3, "m"},
                                    Prefix{1e-6, "µ"}};
  double largest = 0;
  for (const Curve::Point& point : curve.points) largest = std::max(largest, point.y);
  const auto* prefix =
      std::ranges::find_if(kPrefixes, [&](const Prefix& one) { return largest >= one.scale; });
  if (prefix == kPrefixes.end()) --prefix;
  for (Curve::Point& point : curve.points) {
    point.y /= prefix->scale;
    point.sigma /= prefix->scale;
  }
  curve.unit = fmt::format("{}{}", prefix->text, unit);
}

}  // namespace

std::vector<Curve> CurvesOf(const SweepReport& report) {
  Curve power{.name = "power", .unit = ""};
  Curve energy{.name = "energy per step", .unit = ""};
  Curve time{.name = "time per step", .unit = ""};
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const SweepRow& row = report.rows[i];
    const double x = ToNumber(row.setting);
    power.points.push_back({x, row.power.value(), row.power_sigma.value(), i});
    if (!row.per_step) continue;
    energy.points.push_back(
        {x, row.per_step->energy.value(), row.per_step->energy_sigma.value(), i});
    time.points.push_back({x, row.per_step->time.count(), row.per_step->time_sigma.count(), i});
  }
  Scale(power, "W");
  Scale(energy, "J");
  Scale(time, "s");
  if (power.points.empty()) return {};
  if (!KnowsSteps(report)) return {power};
  return {energy, time};
}

std::vector<Curve> RelativeCurvesOf(const SweepReport& report) {
  std::vector<Curve> curves = CurvesOf(report);
  for (Curve& curve : curves) {
    const double whole = curve.points.front().y;
    if (whole <= 0) return {};
    for (Curve::Point& point : curve.points) {
      point.y *= 100 / whole;
      point.sigma *= 100 / whole;
    }
    curve.unit = std::string("%");
  }
  return curves;
}

std::vector<double> Axis::Ticks() const {
  std::vector<double> ticks;
  const auto count = static_cast<int>(std::lround((high - low) / step));
  for (int i = 0; i <= count; ++i) ticks.push_back(low + i * step);
  return ticks;
}

std::string Axis::Label(double tick) const {
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return fmt::format("{:.{}f}", tick, decimals);
}

Axis RoundAxis(double low, double high, int ticks) {
  // A single value gets some room around it.
  if (high - low <= 0) {
    const double room = std::max(std::abs(high) / 10, 1e-9);
    low -= room;
    high += room;
  }
  const double wish = (high - low) / ticks;
  const double power = std::pow(10, std::floor(std::log10(wish)));
  // The outer ticks may lie a step beyond the values, which costs up to two more.
  for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0}) {
    const double step = factor * power;
    const Axis axis{std::floor(low / step) * step, std::ceil(high / step) * step, step};
    if (std::lround((axis.high - axis.low) / step) <= ticks) return axis;
  }
  return {low, high, high - low};
}

Axis AxisOfSettings(const std::vector<Curve>& curves, int ticks) {
  Extent extent;
  for (const Curve& curve : curves)
    for (const Curve::Point& point : curve.points) extent.Add(point.x);
  return RoundAxis(extent.low, extent.high, ticks);
}

Axis AxisOfValues(const std::vector<Curve>& curves, int ticks) {
  Extent extent;
  for (const Curve& curve : curves) {
    for (const Curve::Point& point : curve.points) {
      extent.Add(point.y - point.sigma);
      extent.Add(point.y + point.sigma);
    }
  }
  return RoundAxis(extent.low, extent.high, ticks);
}

std::string SettingTitle(KnobKind knob) {
  switch (knob) {
    case KnobKind::kGpuPowerLimit:
      return "power limit of each GPU (W)";
    case KnobKind::kGraphicsClock:
      return "graphics clock (MHz)";
    case KnobKind::kCpuPowerLimit:
      return "power limit of each CPU (W)";
    case KnobKind::kMemoryClock:
      return "memory clock (MHz)";
  }
  return "";
}

}  // namespace zeus::cli
