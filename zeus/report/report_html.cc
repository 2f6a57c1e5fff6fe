// Pages: the bundle of web/ with the data in it, or plain HTML where there is no bundle.
#include <fmt/format.h>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/report/page_template.h"
#include "zeus/report/report.h"

namespace zeus::report {
namespace {

// JSON inside <script>: no "<" remains that could end the element or begin a comment.
std::string ForScript(const Json& json) {
  const std::string text = JsonText(json);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

constexpr const char* kPlainStyle = R"(<style>
  :root { color-scheme: light dark; --ink: #1b1f24; --page: #ffffff; --rule: #d8dee4 }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6edf3; --page: #0f1419; --rule: #30363d }
  }
  body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
         max-width: 76rem; margin: 2rem auto; padding: 0 1rem }
  svg { max-width: 100%; height: auto }
  figure { margin: 0 } .wide { overflow-x: auto } .subtitle { overflow-wrap: anywhere }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums }
  caption { text-align: left; font-weight: 600 }
  th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid var(--rule) }
  td.number { text-align: right; white-space: nowrap }
</style>
)";

std::string Element(std::string_view name, std::string_view text) {
  return text.empty() ? "" : fmt::format("<{0}>{1}</{0}>\n", name, EscapeXml(text));
}

std::string HtmlList(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += Element("li", item);
  return text.empty() ? "" : "<ul>\n" + text + "</ul>\n";
}

std::string PlainTable(const Table& table) {
  std::string text =
      "<div class=\"wide\"><table>\n" + Element("caption", table.title) + "<thead><tr>";
  for (const std::string& column : table.columns)
    text += "<th scope=\"col\">" + EscapeXml(column) + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (const Cell& cell : row)
      text +=
          fmt::format("<td{}>{}</td>", cell.value ? " class=\"number\"" : "", EscapeXml(cell.text));
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n" + Element("p", table.caption);
}

std::string PlainSection(const Section& section) {
  std::string text = "<section>\n" + Element("h2", section.title) + Element("p", section.text);
  for (const Table& table : section.tables) text += PlainTable(table);
  for (const Figure& figure : section.figures)
    text += "<figure>\n" + ToSvg(figure) +
            (figure.caption.empty() ? "" : Element("figcaption", figure.caption)) + "</figure>\n";
  return text + "</section>\n";
}

}  // namespace

std::string ToPlainHtml(const Report& report) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n{}</head>\n<body>\n<main>\n",
      EscapeXml(report.title), kPlainStyle);
  html += Element("h1", report.title);
  if (!report.subtitle.empty())
    html += fmt::format("<p class=\"subtitle\">{}</p>\n", EscapeXml(report.subtitle));
  html += HtmlList(report.findings);
  for (const Section& section : report.sections) html += PlainSection(section);
  return html + HtmlList(report.remarks) + "</main>\n</body>\n</html>\n";
}

Result<std::string> ToHtml(const Report& report) {
  const std::string_view page = PageTemplate();
  if (page.empty()) return ToPlainHtml(report);
  const std::size_t title = page.find(kTitlePlace);
  const std::size_t data = page.rfind(kDataPlace);
  if (title == std::string_view::npos || data == std::string_view::npos || data < title)
    return Error{ErrorCode::kInternal, "the page for reports has no place for the data"};
  std::string html(page.substr(0, title));
  html += "<title>" + EscapeXml(report.title) + "</title>";
  const std::size_t after_title = title + kTitlePlace.size();
  html += page.substr(after_title, data - after_title);
  html += ForScript(ToJson(report));
  html += page.substr(data + kDataPlace.size());
  return html;
}

}  // namespace zeus::report
