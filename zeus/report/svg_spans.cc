#include "zeus/report/svg_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/report/palette.h"

namespace zeus::report {
namespace {

constexpr double kNarrow = 1.2;      // Pixels: narrower neighbours become one.
constexpr double kOutlined = 5;      // Wider boxes have an outline.
constexpr double kSpanLetter = 6.4;  // How wide a letter is, about.
constexpr double kDarkFrom = 0.7;    // On darker boxes the ink is light.
constexpr std::size_t kMany = 4000;  // More spans than this have no labels of their own.

struct Box {
  double left;
  double right;
  double lane;
  double share;  // Place on the colour scale, averaged over the width.
  std::size_t first;
  std::size_t count = 1;

  double width() const { return right - left; }
  // Whether this box and `next` are so close and so narrow that they look like one.
  bool Blends(const Box& next) const {
    return next.left - right < kNarrow / 2 && next.left >= left && width() < kNarrow &&
           next.width() < kNarrow;
  }
  void Take(const Box& next) {
    const double both = std::max(width() + next.width(), 1e-9);
    share = (share * width() + next.share * next.width()) / both;
    right = next.right;
    count += next.count;
  }
};

std::vector<Box> BoxesOf(const Series& series, const MarkPlace& place) {
  std::vector<Box> boxes;
  std::map<double, std::size_t> last;  // Index of the last box of each lane.
  const std::size_t count = std::min({series.x.size(), series.y.size(), series.until.size()});
  for (std::size_t i = 0; i < count; ++i) {
    const double heat = place.colours != nullptr && i < series.heat.size()
                            ? place.colours->Place(series.heat[i])
                            : 0.5;
    const Box box{place.x.Place(series.x[i]), place.x.Place(series.until[i]), series.y[i],
                  std::isfinite(heat) ? heat : 0, i};
    if (!std::isfinite(box.left) || !std::isfinite(box.right) || !std::isfinite(box.lane)) continue;
    const auto before = last.find(box.lane);
    if (before != last.end() && boxes[before->second].Blends(box)) {
      boxes[before->second].Take(box);
      continue;
    }
    last[box.lane] = boxes.size();
    boxes.push_back(box);
  }
  return boxes;
}

std::string NameIn(const Series& series, const Box& box, double middle) {
  if (box.count > 1 || box.first >= series.span_names.size()) return "";
  const std::string& name = series.span_names[box.first];
  if (kSpanLetter * static_cast<double>(TextWidth(name)) + 2 > box.width()) return "";
  return fmt::format(
      "<text class=\"small middle\" fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
      box.share > kDarkFrom ? "#ffffff" : "#1b1f24", (box.left + box.right) / 2, middle + 4,
      EscapeXml(name));
}

std::string HoverText(const Series& series, const Box& box) {
  if (box.count > 1 || series.x.size() > kMany || box.first >= series.labels.size()) return "";
  return "<title>" + EscapeXml(series.labels[box.first]) + "</title>";
}

}  // namespace

std::string SvgSpans(const Series& series, const MarkPlace& place) {
  std::string text;
  for (const Box& box : BoxesOf(series, place)) {
    const double top = place.y.Place(box.lane + 0.42);
    const double bottom = place.y.Place(box.lane - 0.42);
    text += fmt::format(
        "<rect {}fill=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\">{}"
        "</rect>\n",
        box.width() > kOutlined ? "class=\"outlined\" " : "", SpanColour(box.share), box.left,
        std::min(top, bottom), std::max(box.width(), 0.3), std::abs(bottom - top),
        HoverText(series, box));
    text += NameIn(series, box, (top + bottom) / 2);
  }
  return text;
}

}  // namespace zeus::report
