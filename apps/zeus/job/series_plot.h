#pragma once

#include <string>
#include <vector>

namespace zeus::cli {

// Values against a number that counts up: recurrences, slices.
struct Series {
  struct Point {
    double x;
    double y;
    std::string label{};  // Shown when the reader points at it.
    bool hollow = false;  // Stands out: it did not reach its aim.
  };
  enum class Shape { kLine, kDots };

  std::string name{};
  Shape shape = Shape::kLine;
  std::vector<Point> points{};
};

// One diagram; those of a plot stand below each other over the same axis.
struct SeriesPanel {
  std::string title{};  // "cost (kJ)"
  std::vector<Series> series{};
  // Names for whole values from 0, where the axis is not one of numbers.
  std::vector<std::string> ticks{};
};

struct SeriesPlot {
  std::string title{};
  std::string description{};  // For those who do not see it.
  std::string x_title{};
  std::vector<SeriesPanel> panels{};
};

// Light or dark as the reader prefers; a legend where a panel has more than one series.
std::string ToSvg(const SeriesPlot& plot);

}  // namespace zeus::cli
