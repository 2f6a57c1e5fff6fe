#pragma once

#include <map>
#include <string>
#include <vector>

#include "zeus/report/figure.h"

// The colours of drawings; web/src/charts/palette.ts has the same ones.
namespace zeus::report {

// Chooses the class of kSvgStyle for each series: that of its role, the same in every figure, or
// one of six others in the order in which names appear.
class Palette {
 public:
  explicit Palette(const Figure& figure);

  // Returns "role-zeus", "other-2".
  std::string CssClass(const Series& series) const;

 private:
  std::map<std::string, std::string> others_;
};

// The style sheet of drawings. Colours are explicit because not every renderer knows variables. A
// series sets `color`, its marks use it as currentColor.
extern const char* const kSvgStyle;

// A colour between the ends of the scale of heat maps; share in [0, 1].
std::string HeatColour(double share);
// The same for spans, which must also stand out from a dark page.
std::string SpanColour(double share);

}  // namespace zeus::report
