#include "zeus/base/csv.h"

namespace zeus {

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c == '\n' || c == '\r' ? ' ' : c;
  }
  return field + '"';
}

std::string CsvRow(std::span<const std::string> fields) {
  std::string row;
  for (const std::string& field : fields) {
    if (&field != fields.data()) row += ',';
    row += CsvField(field);
  }
  return row;
}

}  // namespace zeus
