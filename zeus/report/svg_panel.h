#pragma once

#include <string>

#include "zeus/report/palette.h"

namespace zeus::report {

// Where a panel is drawn, in pixels: its name, axes and titles included.
struct PanelBox {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// `name` tells the clip paths of a document apart.
std::string SvgPanel(const Panel& panel, const Palette& palette, const PanelBox& box,
                     const std::string& name);

}  // namespace zeus::report
