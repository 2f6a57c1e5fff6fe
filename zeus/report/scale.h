#pragma once

#include <limits>
#include <string>
#include <vector>

#include "zeus/report/figure.h"

namespace zeus::report {

// The smallest range that holds all finite values that were added.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value);
  bool empty() const { return low > high; }
};

// The range that an axis must show: every series of the panel with its spread. On a logarithmic
// axis only positive values count.
enum class Direction { kX, kY };
Extent ComputeExtent(const Panel& panel, Direction direction);

// The room that the bars of one x share, in units of x.
double BarSpacing(const Panel& panel);

// Maps values to positions in a drawing, and chooses the ticks of an axis. A logarithmic axis
// without positive values becomes linear.
class Scale {
 public:
  struct Tick {
    double value;
    std::string label;
  };

  // `from` and `to` are the positions of the low and the high end.
  Scale(const Axis& axis, const Extent& extent, double from, double to, int ticks);

  // Returns NaN for values that are not finite, or not positive on a logarithmic axis.
  double Place(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }
  double low() const { return low_; }
  double high() const { return high_; }
  bool logarithmic() const { return logarithmic_; }
  double from() const { return from_; }
  double to() const { return to_; }

 private:
  void MakeLinear(const Axis& axis, Extent extent, int ticks);
  void MakeLogarithmic(const Extent& extent, int ticks);

  bool logarithmic_ = false;
  double low_ = 0;
  double high_ = 1;
  double from_;
  double to_;
  std::vector<Tick> ticks_;
};

// Formats a tick, short: "0.05", "35k", "2.5M", for the numbers on an axis whose ticks lie `step`
// apart.
std::string TickLabel(double value, double step);

}  // namespace zeus::report
