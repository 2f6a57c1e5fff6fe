#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/zeus/profile/sweep_report.h"

namespace zeus::cli {

// A quantity against the setting of the knob.
struct Curve {
  struct Point {
    double x;  // The setting, as a number.
    double y;
    double sigma;
    std::size_t row;  // Of the report.
  };
  std::string name;  // "energy per step"
  std::string unit;
  std::vector<Point> points{};
};

// What a report has to show: energy and time per step, or power alone where steps are unknown. In
// joules, seconds and watts with a prefix that suits them.
std::vector<Curve> CurvesOf(const SweepReport& report);
// The same in per cent of the highest setting's.
std::vector<Curve> RelativeCurvesOf(const SweepReport& report);

// An axis whose ticks are round numbers and that holds all values it was made for.
struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;

  std::vector<double> Ticks() const;
  // 0 at the low end, 1 at the high end.
  double Place(double value) const { return (value - low) / (high - low); }
  std::string Label(double tick) const;
};
// At most `ticks` steps, two at least.
Axis RoundAxis(double low, double high, int ticks);
Axis AxisOfSettings(const std::vector<Curve>& curves, int ticks);
// Error bars included.
Axis AxisOfValues(const std::vector<Curve>& curves, int ticks);

// "power limit (W)", "graphics clock (MHz)"
std::string SettingTitle(KnobKind knob);

}  // namespace zeus::cli
