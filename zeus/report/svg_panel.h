#pragma once

#include <string>

#include "zeus/report/palette.h"

namespace zeus::report {

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
