// The page: the bundle of web/ with the data in it.
#include "zeus/base/json.h"
#include "zeus/base/xml.h"
#include "zeus/report/page_template.h"
#include "zeus/report/report.h"

namespace zeus::report {
namespace {

// JSON inside <script>: no "<" remains that could end the element or begin a comment.
std::string ForScript(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
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

}  // namespace

Result<std::string> ToHtml(const Report& report) {
  const std::string_view page = PageTemplate();
  const std::size_t title = page.find(kTitlePlace);
  const std::size_t data = page.rfind(kDataPlace);
  if (page.empty()) {
    return Error{ErrorCode::kNotSupported,
                 "this zeus was built without the page for reports: install nodejs and npm, then "
                 "build it again"};
  }
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
