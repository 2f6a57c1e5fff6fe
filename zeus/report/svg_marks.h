#pragma once

#include <string>

#include "zeus/report/scale.h"

namespace zeus::report {

// The width of the bars of a panel and the place of those of one series, in units of x.
struct BarSlot {
  double width = 0;
  double offset = 0;  // Distance of the middle of the bar from its x.
};

// The slot of the series with this index in the panel; bars of several series stand side by side
// where they share an x, and in the middle of their places otherwise.
BarSlot BarSlotFor(const Panel& panel, std::size_t index);

// The surroundings in which a series is drawn. Long lines are thinned to what the eye can tell
// apart.
struct MarkPlace {
  const Scale& x;
  const Scale& y;
  BarSlot bars{};
  bool on_heat_map = false;        // Marks get a rim, to be seen on every colour.
  const Scale* colours = nullptr;  // From 0 to 1, for spans.
};
std::string SvgMarks(const Series& series, const MarkPlace& place);

}  // namespace zeus::report
