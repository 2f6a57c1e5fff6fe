#include "zeus/base/xml.h"

#include "zeus/base/json.h"

namespace zeus {

std::string EscapeXml(std::string_view text) {
  // Bytes that are not UTF-8 are replaced, as in JSON.
  const std::string json = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string escaped;
  for (const char c : Json::parse(json).get<std::string>()) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace zeus
