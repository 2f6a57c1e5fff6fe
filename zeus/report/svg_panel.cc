#include "zeus/report/svg_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/report/palette.h"

namespace zeus::report {
namespace {

constexpr std::size_t kDotted = 24;  // Lines up to this many points show them.
constexpr std::size_t kFew = 8;
constexpr std::size_t kLabelled = 400;  // More points than this have no labels of their own.
constexpr std::size_t kThinned = 2000;  // Longer lines are thinned.

struct Spot {
  double x;
  double y;
  std::size_t index;
};

using Run = std::vector<Spot>;

// Points that follow each other without a gap.
std::vector<Run> FindRuns(const Series& series, const std::vector<double>& values,
                          const MarkPlace& place) {
  std::vector<Run> runs;
  bool open = false;
  for (std::size_t i = 0; i < std::min(series.x.size(), values.size()); ++i) {
    const Spot spot{place.x.Place(series.x[i]), place.y.Place(values[i]), i};
    const bool visible = std::isfinite(spot.x) && std::isfinite(spot.y);
    if (visible && !open) runs.emplace_back();
    if (visible) runs.back().push_back(spot);
    open = visible;
  }
  return runs;
}

// The first, lowest, highest and last point of each column of pixels: the line looks the same.
Run Thinned(const Run& run) {
  const bool ordered = std::ranges::is_sorted(run, {}, &Spot::x);
  if (run.size() <= kThinned || !ordered) return run;
  Run thin;
  for (std::size_t begin = 0; begin < run.size();) {
    std::size_t end = begin + 1;
    while (end < run.size() && std::floor(run[end].x) == std::floor(run[begin].x)) ++end;
    const auto column = std::ranges::subrange(run.begin() + static_cast<std::ptrdiff_t>(begin),
                                              run.begin() + static_cast<std::ptrdiff_t>(end));
    const auto [low, high] = std::ranges::minmax_element(column, {}, &Spot::y);
    for (const std::size_t index : std::set{begin, static_cast<std::size_t>(low - run.begin()),
                                            static_cast<std::size_t>(high - run.begin()), end - 1})
      thin.push_back(run[index]);
    begin = end;
  }
  return thin;
}

std::string Outline(const Run& run, bool steps) {
  std::string path;
  for (const Spot& spot : run) {
    if (path.empty())
      path = fmt::format("M{:.1f} {:.1f}", spot.x, spot.y);
    else if (steps)
      path += fmt::format("H{:.1f}V{:.1f}", spot.x, spot.y);
    else
      path += fmt::format("L{:.1f} {:.1f}", spot.x, spot.y);
  }
  return path;
}

std::string Tip(const Series& series, std::size_t index) {
  if (series.x.size() > kLabelled) return "";
  std::string text = index < series.labels.size() && !series.labels[index].empty()
                         ? series.labels[index]
                         : fmt::format("{}: {:.5g}", series.name, series.y[index]);
  return "<title>" + EscapeXml(text) + "</title>";
}

std::string Dot(const Series& series, const Spot& spot, double radius, double opacity = 1) {
  const std::string shade = opacity < 1 ? fmt::format(" fill-opacity=\"{:.2f}\"", opacity) : "";
  return fmt::format("<circle class=\"fill\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"{}>{}</circle>\n",
                     spot.x, spot.y, radius, shade, Tip(series, spot.index));
}

std::string Band(const Series& series, const MarkPlace& place) {
  std::string text;
  const auto lows = FindRuns(series, series.low, place);
  const auto highs = FindRuns(series, series.high, place);
  // The gaps of low and high must coincide; otherwise no band is drawn.
  if (lows.size() != highs.size()) return "";
  for (std::size_t i = 0; i < lows.size(); ++i) {
    const Run forward = Thinned(highs[i]);
    Run back = Thinned(lows[i]);
    std::ranges::reverse(back);
    const std::string edge = Outline(back, false);
    text += fmt::format("<path class=\"band\" d=\"{}L{}Z\"/>\n", Outline(forward, false),
                        edge.empty() ? edge : edge.substr(1));
  }
  return text;
}

std::string Whisker(const Series& series, const MarkPlace& place, double x, std::size_t index,
                    const char* style) {
  if (index >= series.low.size() || index >= series.high.size()) return "";
  const double low = place.y.Place(series.low[index]);
  const double high = place.y.Place(series.high[index]);
  if (!std::isfinite(low) || !std::isfinite(high)) return "";
  return fmt::format(
      "<path class=\"whisker {}\" d=\"M{:.1f} {:.1f}V{:.1f}M{:.1f} {:.1f}h6M{:.1f} {:.1f}h6\"/>\n",
      style, x, low, high, x - 3, low, x - 3, high);
}

std::string Lines(const Series& series, const MarkPlace& place) {
  std::string text = Band(series, place);
  for (const Run& run : FindRuns(series, series.y, place)) {
    const Run thin = Thinned(run);
    if (thin.size() > 1) {
      text += fmt::format("<path class=\"stroke\" d=\"{}\"/>\n",
                          Outline(thin, series.mark == Mark::kSteps));
    }
    // A point between two gaps would not be seen otherwise.
    if (run.size() > 1 && (series.x.size() > kDotted || series.mark == Mark::kSteps)) continue;
    for (const Spot& spot : run) text += Dot(series, spot, 2.6);
  }
  return text;
}

std::string Points(const Series& series, const MarkPlace& place) {
  std::string text;
  std::set<std::pair<long, long>> drawn;
  // A few points among many are what the figure is about.
  const bool few = series.x.size() <= kFew;
  for (const Run& run : FindRuns(series, series.y, place)) {
    for (const Spot& spot : run) {
      // Where there are many points, one is drawn for each pixel.
      if (series.x.size() > kThinned &&
          !drawn.emplace(std::lround(spot.x), std::lround(spot.y)).second)
        continue;
      text += Whisker(series, place, spot.x, spot.index, "");
      text += few ? Dot(series, spot, 4.6)
                  : Dot(series, spot, series.x.size() > kLabelled ? 1.6 : 3.2, 0.75);
    }
  }
  return text;
}

std::string Bars(const Series& series, const MarkPlace& place) {
  std::string text;
  const double foot = place.y.logarithmic() ? place.y.from() : place.y.Place(0);
  for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
    const double middle = series.x[i] + place.bars.offset;
    const double left = place.x.Place(middle - place.bars.width / 2);
    const double right = place.x.Place(middle + place.bars.width / 2);
    const double top = place.y.Place(series.y[i]);
    if (!std::isfinite(left) || !std::isfinite(right) || !std::isfinite(top)) continue;
    text += fmt::format(
        "<rect class=\"fill\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">{}"
        "</rect>\n",
        left, std::min(top, foot), std::max(right - left, 0.5), std::abs(foot - top),
        Tip(series, i));
    text += Whisker(series, place, (left + right) / 2, i, "dark");
  }
  return text;
}

std::string Search(const Series& series, const MarkPlace& place) {
  std::string text;
  for (const Run& run : FindRuns(series, series.y, place)) {
    if (place.on_heat_map) {
      text += fmt::format("<path class=\"halo\" fill=\"none\" stroke-width=\"4.5\" d=\"{}\"/>\n",
                          Outline(run, false));
    }
    for (std::size_t i = 0; i < run.size(); ++i) {
      const double age =
          static_cast<double>(run[i].index + 1) / static_cast<double>(series.x.size());
      const double opacity = 0.45 + 0.55 * age;
      if (i > 0) {
        text += fmt::format(
            "<path class=\"stroke\" stroke-opacity=\"{:.2f}\" d=\"M{:.1f} {:.1f}L{:.1f} "
            "{:.1f}\"/>\n",
            opacity, run[i - 1].x, run[i - 1].y, run[i].x, run[i].y);
      }
      const bool last = run[i].index + 1 == series.x.size();
      text += Dot(series, run[i], last ? 5 : 3, opacity);
    }
  }
  return text;
}

std::string Rules(const Series& series, const MarkPlace& place) {
  std::string text;
  for (const Run& run : FindRuns(series, series.y, place)) {
    text += fmt::format("<path class=\"thin\" d=\"{}\"/>\n", Outline(Thinned(run), false));
  }
  return text;
}

// Whether each x has a bar of one series at most.
bool StandAlone(const Panel& panel) {
  std::set<double> taken;
  for (const Series& series : panel.series) {
    if (series.mark != Mark::kBars) continue;
    for (const double x : std::set<double>(series.x.begin(), series.x.end()))
      if (!taken.insert(x).second) return false;
  }
  return true;
}

}  // namespace

BarSlot BarSlotFor(const Panel& panel, std::size_t index) {
  double count = 0;
  double before = 0;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    if (panel.series[i].mark != Mark::kBars) continue;
    ++count;
    if (i < index) ++before;
  }
  if (count == 0) return {};
  if (StandAlone(panel)) {
    count = 1;
    before = 0;
  }
  const double width = 0.8 * BarSpacing(panel) / count;
  return {.width = width * 0.92, .offset = (before - (count - 1) / 2) * width};
}

std::string SvgMarks(const Series& series, const MarkPlace& place) {
  switch (series.mark) {
    case Mark::kLine:
    case Mark::kSteps:
      return Lines(series, place);
    case Mark::kPoints:
      return Points(series, place);
    case Mark::kBars:
      return Bars(series, place);
    case Mark::kArea:
      return Band(series, place);
    case Mark::kPath:
      return Search(series, place);
    case Mark::kRule:
      return Rules(series, place);
    case Mark::kSpans:
      return SvgSpans(series, place);
  }
  return "";
}

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

std::vector<Box> MakeBoxes(const Series& series, const MarkPlace& place) {
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
  for (const Box& box : MakeBoxes(series, place)) {
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
      text += fmt::format("<g class=\"{}\">\n{}</g>\n", palette.CssClass(series),
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
