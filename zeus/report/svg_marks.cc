#include "zeus/report/svg_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "zeus/base/text.h"
#include "zeus/report/svg_spans.h"

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
std::vector<Run> RunsOf(const Series& series, const std::vector<double>& values,
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
  const auto lows = RunsOf(series, series.low, place);
  const auto highs = RunsOf(series, series.high, place);
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
  for (const Run& run : RunsOf(series, series.y, place)) {
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
  for (const Run& run : RunsOf(series, series.y, place)) {
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
  for (const Run& run : RunsOf(series, series.y, place)) {
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
  for (const Run& run : RunsOf(series, series.y, place)) {
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

}  // namespace zeus::report
