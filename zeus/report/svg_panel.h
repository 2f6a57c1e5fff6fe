#pragma once

#include <string>

#include "zeus/report/palette.h"
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

// The spans of a series, each a box in its lane. Neighbours that are too narrow to be told apart
// are one box with the mean of their colours.
std::string SvgSpans(const Series& series, const MarkPlace& place);

// The place of a panel in pixels, including its name, axes and titles.
struct PanelBox {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// Draws a panel. `name` makes the ids of its clip paths unique within a document.
std::string SvgPanel(const Panel& panel, const Palette& palette, const PanelBox& box,
                     const std::string& name);

}  // namespace zeus::report
