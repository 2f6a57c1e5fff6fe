#include "apps/zeus/html_page.h"

#include <fmt/format.h>

namespace zeus::cli {
namespace {

constexpr const char* kStyle = R"(<style>
  :root { color-scheme: light dark; --ink: #1b1f24; --page: #ffffff; --rule: #d8dee4;
          --mark: #fff1e5 }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6edf3; --page: #0d1117; --rule: #30363d; --mark: #3d2a1a }
  }
  body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
         max-width: 76rem; margin: 2rem auto; padding: 0 1rem }
  svg { max-width: 100%; height: auto }
  code { overflow-wrap: anywhere }
  .wide { overflow-x: auto }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums }
  th, td { padding: .3rem .5rem; text-align: right; border-bottom: 1px solid var(--rule);
           white-space: nowrap }
  th:last-child, td:last-child { text-align: left; white-space: normal; min-width: 14rem }
  tr.chosen { background: var(--mark) }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem }
  dt { font-weight: 600 } dd { margin: 0 }
</style>
)";

}  // namespace

const char* const kSvgStyle = R"(  <style>
    .page { fill: #ffffff } .ink { fill: #1b1f24 } .faint { fill: #57606a }
    .grid { stroke: #d8dee4 } .curve { fill: none; stroke: #0969da; stroke-width: 2 }
    .bar { stroke: #0969da; stroke-width: 1.5 } .dot { fill: #0969da }
    .chosen { fill: #ffffff; stroke: #bc4c00; stroke-width: 2.5 } .letter { fill: #bc4c00 }
    text { font: 13px system-ui, sans-serif } .name { font-weight: 600 }
    .letter { font-weight: 700 } .middle { text-anchor: middle } .end { text-anchor: end }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117 } .ink { fill: #e6edf3 } .faint { fill: #9198a1 }
      .grid { stroke: #30363d } .curve { stroke: #58a6ff } .bar { stroke: #58a6ff }
      .dot { fill: #58a6ff } .chosen { fill: #0d1117; stroke: #f0883e } .letter { fill: #f0883e }
    }
  </style>
)";

std::string HtmlBegin(const std::string& title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n{}</head>\n<body>\n<main>\n",
      title, kStyle);
}

std::string HtmlEnd() { return "</main>\n</body>\n</html>\n"; }

}  // namespace zeus::cli
