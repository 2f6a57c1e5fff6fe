#include "zeus/report/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace zeus::report {
namespace {

constexpr std::array<std::string_view, 7> kRoles = {
    "default", "grid", "zeus", "knowledge_gradient", "oracle", "paper", "front"};
constexpr std::size_t kOthers = 6;

// The key by which a series without a known role gets its colour.
const std::string& Key(const Series& series) {
  return series.role.empty() ? series.name : series.role;
}

bool HasRole(const Series& series) { return std::ranges::count(kRoles, series.role) > 0; }

struct Colour {
  double red;
  double green;
  double blue;
};

// Pale to dark through one family of hues: its order is seen without telling hues apart.
constexpr std::array kHeat = {Colour{253, 246, 227}, Colour{248, 217, 143}, Colour{236, 166, 66},
                              Colour{200, 104, 30},  Colour{134, 54, 20},   Colour{66, 22, 12}};

}  // namespace

const char* const kSvgStyle = R"(  <style>
    text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
    .page { fill: #ffffff } .ink { fill: #1b1f24 } .faint { fill: #57606a }
    .rule { stroke: #d0d7de } .frame { stroke: #8c959f; fill: none } .halo { stroke: #ffffff }
    .absent { fill: #eef1f4 }
    .title { font-size: 15px; font-weight: 600 } .name { font-weight: 600 } .small { font-size: 11px }
    .middle { text-anchor: middle } .end { text-anchor: end }
    .stroke { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round }
    .thin { fill: none; stroke: currentColor; stroke-width: 1.1; stroke-dasharray: 5 4 }
    .fill { fill: currentColor } .band { fill: currentColor; fill-opacity: .18 }
    .whisker { fill: none; stroke: currentColor; stroke-width: 1.2 }
    .dark { stroke: #1b1f24 } .outlined { stroke: #8c959f; stroke-width: .6 }
    .role-oracle .stroke { stroke-dasharray: 6 3 }
    .role-default { color: #6e7781 } .role-grid { color: #b07400 } .role-zeus { color: #0b62c4 }
    .role-knowledge_gradient { color: #00806a } .role-oracle { color: #14171a }
    .role-paper { color: #c0267e } .role-front { color: #c2410c }
    .other-0 { color: #7a4fb5 } .other-1 { color: #8a5a2b } .other-2 { color: #64720a }
    .other-3 { color: #1c7fae } .other-4 { color: #b8405e } .other-5 { color: #46566b }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0f1419 } .ink { fill: #e6edf3 } .faint { fill: #9aa4af }
      .rule { stroke: #2d333b } .frame { stroke: #6e7781 } .halo { stroke: #0f1419 }
      .absent { fill: #1d242c } .dark { stroke: #e6edf3 }
      .role-default { color: #9aa4af } .role-grid { color: #e3a53a } .role-zeus { color: #5aa9ff }
      .role-knowledge_gradient { color: #2fc4a2 } .role-oracle { color: #f5f7fa }
      .role-paper { color: #ff7ac2 } .role-front { color: #fb8b5a }
      .other-0 { color: #b99bff } .other-1 { color: #d2a679 } .other-2 { color: #b7c63e }
      .other-3 { color: #6fd0f5 } .other-4 { color: #ff93a8 } .other-5 { color: #a9bccf }
    }
  </style>
)";

Palette::Palette(const Figure& figure) {
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      if (HasRole(series) || others_.contains(Key(series))) continue;
      others_.emplace(Key(series), fmt::format("other-{}", others_.size() % kOthers));
    }
  }
}

std::string Palette::CssClass(const Series& series) const {
  if (HasRole(series)) return "role-" + series.role;
  const auto found = others_.find(Key(series));
  return found == others_.end() ? "other-0" : found->second;
}

std::string HeatColour(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (kHeat.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), kHeat.size() - 2);
  const double part = place - static_cast<double>(below);
  const auto mix = [part](double from, double to) {
    return std::lround(from + part * (to - from));
  };
  const Colour& from = kHeat[below];
  const Colour& to = kHeat[below + 1];
  return fmt::format("#{:02x}{:02x}{:02x}", mix(from.red, to.red), mix(from.green, to.green),
                     mix(from.blue, to.blue));
}

std::string SpanColour(double share) {
  constexpr double kDarkest = 0.84;
  return HeatColour(kDarkest * std::clamp(share, 0.0, 1.0));
}

}  // namespace zeus::report
