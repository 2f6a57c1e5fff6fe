#pragma once

#include <map>
#include <string>
#include <vector>

#include "zeus/report/figure.h"

// The colours of drawings; web/src/charts/palette.ts has the same ones.
namespace zeus::report {

// Which class of kSvgStyle a series is drawn with: that of its role, the same in every figure, or
// one of its own in the order in which names appear.
class Palette {
 public:
  explicit Palette(const Figure& figure);

  // "role-zeus", "other-2".
  std::string ClassOf(const Series& series) const;

 private:
  std::map<std::string, std::string> others_;
};

// Explicit colours for both schemes, for not every renderer knows variables. A series sets `color`,
// its marks use it as currentColor.
extern const char* const kSvgStyle;

// A colour between the ends of the scale of heat maps; share in [0, 1].
std::string HeatColour(double share);
// Likewise for spans, which must stand out from a dark page, too.
std::string SpanColour(double share);

}  // namespace zeus::report
