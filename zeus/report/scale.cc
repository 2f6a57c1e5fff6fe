#include "zeus/report/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace zeus::report {
namespace {

// Room beyond the outermost values of an axis that does not start at zero.
constexpr double kPadding = 0.04;

double RoundStep(double wish) {
  const double power = std::pow(10, std::floor(std::log10(wish)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= wish * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// A range of a single value gets room around it.
Extent Widened(Extent extent) {
  if (extent.empty()) return {0, 1};
  if (extent.high > extent.low) return extent;
  const double room = extent.low == 0 ? 1 : std::abs(extent.low) / 2;
  return {extent.low - room, extent.high + room};
}

std::string PowerOfTen(int exponent) {
  constexpr std::array<std::string_view, 10> kRaised = {"⁰", "¹", "²", "³", "⁴",
                                                        "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = "10";
  for (const char c : fmt::format("{}", exponent))
    text += c == '-' ? "⁻" : kRaised[static_cast<std::size_t>(c - '0')];
  return text;
}

std::string LogLabel(double value) {
  if (value >= 1e-3 && value < 1e15) return TickLabel(value, value);
  const int exponent = static_cast<int>(std::floor(std::log10(value) + 1e-9));
  const auto leading = std::lround(value / std::pow(10, exponent));
  return leading == 1 ? PowerOfTen(exponent) : fmt::format("{}×{}", leading, PowerOfTen(exponent));
}

std::vector<Scale::Tick> RoundNumbers(double low, double high, int count) {
  std::vector<Scale::Tick> ticks;
  const double step = RoundStep((high - low) / std::max(count, 1));
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    const double value = i == 0 ? 0 : i * step;
    ticks.push_back({value, TickLabel(value, step)});
    if (ticks.size() > 100) break;  // Steps are below the resolution of doubles.
  }
  return ticks;
}

// Two at least, where there are so many round numbers.
std::vector<Scale::Tick> LinearTicks(double low, double high, int count) {
  for (int wish = count; wish < count + 3; ++wish) {
    auto ticks = RoundNumbers(low, high, wish);
    if (ticks.size() >= 2) return ticks;
  }
  return RoundNumbers(low, high, count);
}

// The digits that ticks within a decade begin with, from many to few.
std::vector<std::vector<double>> LeadingDigits() {
  return {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 5}, {1, 2, 5}, {1, 3}, {1}};
}

std::vector<Scale::Tick> DecadeTicks(double low, double high, const std::vector<double>& digits,
                                     int every) {
  std::vector<Scale::Tick> ticks;
  const int last = static_cast<int>(std::floor(std::log10(high)));
  for (int exponent = static_cast<int>(std::floor(std::log10(low))); exponent <= last; ++exponent) {
    if (exponent % every != 0) continue;
    for (const double digit : digits) {
      const double value = digit * std::pow(10, exponent);
      if (value >= low && value <= high) ticks.push_back({value, LogLabel(value)});
    }
  }
  return ticks;
}

}  // namespace

void Extent::Add(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

namespace {

// All values of a series along one axis.
std::vector<double> SeriesValues(const Series& series, Direction direction) {
  std::vector<double> values = direction == Direction::kX ? series.x : series.y;
  if (direction == Direction::kX) {
    values.insert(values.end(), series.until.begin(), series.until.end());
    return values;
  }
  values.insert(values.end(), series.low.begin(), series.low.end());
  values.insert(values.end(), series.high.begin(), series.high.end());
  return values;
}

}  // namespace

Extent ComputeExtent(const Panel& panel, Direction direction) {
  const Axis& axis = direction == Direction::kX ? panel.x : panel.y;
  Extent extent;
  bool bars = false;
  for (const Series& series : panel.series) {
    for (const double value : SeriesValues(series, direction))
      if (value > 0 || !axis.logarithmic) extent.Add(value);
    bars = bars || series.mark == Mark::kBars;
  }
  if (!bars || extent.empty()) return extent;
  if (direction == Direction::kY) {
    if (!axis.logarithmic) extent.Add(0);  // Bars stand on zero.
  } else if (axis.categories.empty()) {
    const double room = BarSpacing(panel) / 2;  // Half a bar lies beyond each end.
    if (extent.low > room || !axis.logarithmic) extent.low -= room;
    extent.high += room;
  }
  return extent;
}

double BarSpacing(const Panel& panel) {
  if (!panel.x.categories.empty()) return 1;
  std::vector<double> places;
  for (const Series& series : panel.series) {
    if (series.mark != Mark::kBars) continue;
    for (const double x : series.x)
      if (std::isfinite(x)) places.push_back(x);
  }
  std::ranges::sort(places);
  double spacing = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < places.size(); ++i)
    if (places[i] > places[i - 1]) spacing = std::min(spacing, places[i] - places[i - 1]);
  return std::isfinite(spacing) ? spacing : 1;
}

Scale::Scale(const Axis& axis, const Extent& extent, double from, double to, int ticks)
    : from_(from), to_(to) {
  if (!axis.categories.empty()) {
    low_ = -0.5;
    high_ = static_cast<double>(axis.categories.size()) - 0.5;
    for (std::size_t i = 0; i < axis.categories.size(); ++i)
      ticks_.push_back({static_cast<double>(i), axis.categories[i]});
  } else if (axis.logarithmic && !extent.empty() && extent.low > 0) {
    MakeLogarithmic(extent, ticks);
  } else {
    MakeLinear(axis, extent, ticks);
  }
}

void Scale::MakeLinear(const Axis& axis, Extent extent, int ticks) {
  if (axis.from_zero) extent.Add(0);
  extent = Widened(extent);
  const double padding = (extent.high - extent.low) * kPadding;
  // Zero stays the edge where the values end there: bars stand on the axis.
  low_ = extent.low == 0 ? 0 : extent.low - padding;
  high_ = extent.high == 0 ? 0 : extent.high + padding;
  ticks_ = LinearTicks(low_, high_, ticks);
}

void Scale::MakeLogarithmic(const Extent& extent, int ticks) {
  logarithmic_ = true;
  const double room = std::max(std::log10(extent.high / extent.low) * kPadding, 0.02);
  low_ = extent.low * std::pow(10, -room);
  high_ = extent.high * std::pow(10, room);
  const auto wish = static_cast<std::size_t>(std::max(ticks, 1));
  const int every = std::max(1, static_cast<int>(std::ceil(std::log10(high_ / low_) / ticks)));
  for (const auto& digits : LeadingDigits()) {
    if (every > 1 && digits.size() > 1) continue;
    ticks_ = DecadeTicks(low_, high_, digits, every);
    if (ticks_.size() <= wish + 1 && ticks_.size() >= std::min<std::size_t>(3, wish)) return;
  }
  // The last were the decades alone; where even these are too few, round numbers lie evenly.
  if (ticks_.size() < 2) ticks_ = LinearTicks(low_, high_, ticks);
}

double Scale::Place(double value) const {
  if (!std::isfinite(value) || (logarithmic_ && value <= 0))
    return std::numeric_limits<double>::quiet_NaN();
  const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_)
                                    : (value - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

std::string TickLabel(double value, double step) {
  struct Suffix {
    double scale;
    std::string_view text;
  };
  constexpr std::array kSuffixes = {Suffix{1e12, "T"}, Suffix{1e9, "G"}, Suffix{1e6, "M"},
                                    Suffix{1e4, "k"}};
  const auto* suffix = std::ranges::find_if(
      kSuffixes, [value](const Suffix& one) { return std::abs(value) >= one.scale * (1 - 1e-9); });
  const bool plain = suffix == kSuffixes.end();
  const double unit = plain ? 1 : (suffix->scale == 1e4 ? 1e3 : suffix->scale);
  const int decimals =
      std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit) - 1e-9)), 0, 12);
  std::string text = fmt::format("{:.{}f}", value / unit, decimals);
  // Ticks of a logarithmic axis are their own step: "2.0" is "2".
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  // The real minus sign is as wide as a digit.
  if (text.front() == '-') text.replace(0, 1, "−");
  return text + (plain ? "" : std::string(suffix->text));
}

}  // namespace zeus::report
