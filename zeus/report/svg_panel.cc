#include "zeus/report/svg_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/report/svg_marks.h"

namespace zeus::report {
namespace {

constexpr double kTickLetter = 6.4;  // How wide a letter is, about.
constexpr double kHeatBar = 78;      // Room for the scale of colours.
constexpr double kNameRoom = 15;     // Between two names of categories, which may be slanted.
constexpr double kTickRoom = 62;     // Between two numbers on the axis of x.

// The first characters of a text that is too long.
std::string Cut(const std::string& text, std::size_t characters) {
  if (TextWidth(text) <= characters) return text;
  std::string kept;
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U && ++count >= characters) break;
    kept += c;
  }
  return kept + "…";
}

double LongestLabel(const std::vector<std::string>& labels) {
  std::size_t longest = 0;
  for (const std::string& label : labels) longest = std::max(longest, TextWidth(label));
  return std::min(static_cast<double>(longest), 22.0) * kTickLetter;
}

std::string TickText(double value) { return fmt::format("{:.4g}", value); }

class PanelDrawing {
 public:
  PanelDrawing(const Panel& panel, const PanelBox& box)
      : panel_(panel),
        slanted_(Slanted(panel, box)),
        left_(box.left + std::max(RoomBeside(panel), slanted_ ? RoomBelow(panel, box) : 0)),
        right_(box.left + box.width - (HasColours(panel) ? kHeatBar : 14)),
        top_(box.top + (panel.title.empty() ? 10 : 30)),
        bottom_(box.top + box.height - (panel.x.title.empty() ? 10 : 26) -
                (slanted_ ? LongestLabel(panel.x.categories) * 0.62 + 14 : 22)),
        box_(box),
        x_(panel.x, ComputeExtent(panel, Direction::kX), left_, right_,
           static_cast<int>(std::max((right_ - left_) / kTickRoom, 2.0))),
        y_(panel.y, ComputeExtent(panel, Direction::kY), bottom_, top_,
           static_cast<int>(std::max((bottom_ - top_) / 42, 2.0))) {}

  std::string Text(const Palette& palette, const std::string& name) const {
    std::string text = Title() + (panel_.heat_map ? HeatMapCells() : "") + Grid();
    text += fmt::format(
        "<clipPath id=\"{0}\"><rect x=\"{1:.1f}\" y=\"{2:.1f}\" width=\"{3:.1f}\" "
        "height=\"{4:.1f}\"/></clipPath>\n<g clip-path=\"url(#{0})\">\n",
        name, left_ - 4, top_ - 4, right_ - left_ + 8, bottom_ - top_ + 8);
    const Scale colours = HeatScale(0, 1);
    for (std::size_t i = 0; i < panel_.series.size(); ++i) {
      const Series& series = panel_.series[i];
      text += fmt::format("<g class=\"{}\">\n{}</g>\n", palette.ClassOf(series),
                          SvgMarks(series, {.x = x_,
                                            .y = y_,
                                            .bars = BarSlotFor(panel_, i),
                                            .on_heat_map = panel_.heat_map.has_value(),
                                            .colours = &colours}));
    }
    return text + "</g>\n" + (HasColours(panel_) ? HeatBar() : "");
  }

 private:
  static bool HasColours(const Panel& panel) {
    return panel.heat_map.has_value() || panel.colour_scale.has_value();
  }

  static bool Slanted(const Panel& panel, const PanelBox& box) {
    if (panel.x.categories.empty()) return false;
    const double slot = (box.width - 70) / static_cast<double>(panel.x.categories.size());
    return LongestLabel(panel.x.categories) + 4 > slot;
  }

  static double RoomBeside(const Panel& panel) {
    return (panel.y.title.empty() ? 12 : 28) +
           (panel.y.categories.empty() ? 40 : LongestLabel(panel.y.categories) + 8);
  }

  // The first of the slanted names reaches out to the left.
  static double RoomBelow(const Panel& panel, const PanelBox& box) {
    const double slot = (box.width - 70) / static_cast<double>(panel.x.categories.size());
    return LongestLabel({panel.x.categories.front()}) * 0.8 - slot / 2 + 4;
  }

  std::string Title() const {
    std::string text;
    if (!panel_.title.empty()) {
      text += fmt::format(
          "<text class=\"ink name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left_, box_.top + 18,
          EscapeXml(Cut(panel_.title, static_cast<std::size_t>((right_ - left_) / kTickLetter))));
    }
    if (!panel_.x.title.empty()) {
      text +=
          fmt::format("<text class=\"ink middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                      (left_ + right_) / 2, box_.top + box_.height - 8, EscapeXml(panel_.x.title));
    }
    if (!panel_.y.title.empty()) {
      text += fmt::format(
          "<text class=\"ink middle\" transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}"
          "</text>\n",
          box_.left + 14, (top_ + bottom_) / 2, EscapeXml(panel_.y.title));
    }
    return text;
  }

  std::string Grid() const {
    std::string text;
    for (const Scale::Tick& tick : y_.ticks()) {
      const double y = y_.Place(tick.value);
      if (panel_.y.categories.empty()) text += Line(left_, y, right_, y);
      text += fmt::format("<text class=\"faint small end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                          left_ - 7, y + 4, EscapeXml(Cut(tick.label, 22)));
    }
    for (const Scale::Tick& tick : x_.ticks()) {
      const double x = x_.Place(tick.value);
      if (panel_.x.categories.empty()) text += Line(x, top_, x, bottom_);
      if (HasRoom(tick)) text += XLabel(x, EscapeXml(Cut(tick.label, 22)));
    }
    return text + fmt::format("<path class=\"frame\" d=\"M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}\"/>\n",
                              left_, top_, bottom_, right_);
  }

  // Categories that lie too close for all of their names show some of them.
  bool HasRoom(const Scale::Tick& tick) const {
    if (panel_.x.categories.empty()) return true;
    const double slot = (right_ - left_) / static_cast<double>(panel_.x.categories.size());
    const double every = std::max(1.0, std::ceil(kNameRoom / slot));
    return std::fmod(tick.value, every) == 0;
  }

  static std::string Line(double x1, double y1, double x2, double y2) {
    return fmt::format("<path class=\"rule\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", x1, y1, x2,
                       y2);
  }

  std::string XLabel(double x, const std::string& label) const {
    if (slanted_) {
      return fmt::format(
          "<text class=\"faint small end\" transform=\"translate({:.1f} {:.1f}) rotate(-38)\">{}"
          "</text>\n",
          x + 4, bottom_ + 14, label);
    }
    return fmt::format("<text class=\"faint small middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       x, bottom_ + 17, label);
  }

  Extent HeatExtent() const {
    Extent extent;
    if (panel_.colour_scale) {
      extent.Add(panel_.colour_scale->low);
      extent.Add(panel_.colour_scale->high);
    } else if (panel_.heat_map) {
      for (const double value : panel_.heat_map->values)
        if (value > 0 || !panel_.heat_map->logarithmic) extent.Add(value);
    }
    return extent;
  }

  Scale HeatScale(double from, double to) const {
    Extent extent = HeatExtent();
    if (extent.empty()) extent = {0, 1};
    const bool logarithmic = panel_.heat_map && panel_.heat_map->logarithmic;
    return {Axis{.title = "", .logarithmic = logarithmic}, extent, from, to, 4};
  }

  std::string HeatMapCells() const {
    const std::size_t columns = panel_.x.categories.size();
    const std::size_t rows = panel_.y.categories.size();
    if (columns == 0 || rows == 0) return "";
    const Scale heat = HeatScale(0, 1);
    const double width = (right_ - left_) / static_cast<double>(columns);
    const double height = (bottom_ - top_) / static_cast<double>(rows);
    std::string text;
    for (std::size_t i = 0; i < std::min(panel_.heat_map->values.size(), rows * columns); ++i) {
      const std::size_t row = i / columns;
      const std::size_t column = i % columns;
      const double value = panel_.heat_map->values[i];
      const double share = heat.Place(value);
      const std::string look =
          std::isfinite(share) ? fmt::format("fill=\"{}\"", HeatColour(share)) : "class=\"absent\"";
      text += fmt::format(
          "<rect {} x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}, {}: {}"
          "</title></rect>\n",
          look, left_ + width * static_cast<double>(column) + 0.5,
          bottom_ - height * static_cast<double>(row + 1) + 0.5, width - 1, height - 1,
          EscapeXml(panel_.x.categories[column]), EscapeXml(panel_.y.categories[row]),
          std::isfinite(value) ? TickText(value) : "none");
    }
    return text;
  }

  std::string HeatBar() const {
    constexpr int kSteps = 24;
    const double left = right_ + 22;
    const double step = (bottom_ - top_) / kSteps;
    std::string text;
    for (int i = 0; i < kSteps; ++i) {
      text += fmt::format(
          "<rect fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"{:.1f}\"/>\n",
          panel_.heat_map ? HeatColour((i + 0.5) / kSteps) : SpanColour((i + 0.5) / kSteps), left,
          bottom_ - step * (i + 1), step + 0.5);
    }
    const Scale scale = HeatScale(bottom_, top_);
    for (const Scale::Tick& tick : scale.ticks()) {
      text += fmt::format("<text class=\"faint small\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                          left + 14, scale.Place(tick.value) + 4, tick.label);
    }
    return text +
           fmt::format(
               "<text class=\"faint small end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
               box_.left + box_.width - 2, top_ - 8,
               EscapeXml(panel_.heat_map ? panel_.heat_map->title : panel_.colour_scale->title));
  }

  const Panel& panel_;
  bool slanted_;
  double left_;
  double right_;
  double top_;
  double bottom_;
  PanelBox box_;
  Scale x_;
  Scale y_;
};

}  // namespace

std::string SvgPanel(const Panel& panel, const Palette& palette, const PanelBox& box,
                     const std::string& name) {
  return PanelDrawing(panel, box).Text(palette, name);
}

}  // namespace zeus::report
