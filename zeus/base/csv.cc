#include "zeus/base/csv.h"

#include <algorithm>
#include <optional>

namespace zeus {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsCsvBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && IsCsvBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsCsvBlank(text.back())) text.remove_suffix(1);
  return text;
}

// The length of the first record of `text`, without the end of its line: a line, or several where a
// quoted field holds ends of lines. A quotation mark without a partner spoils its line only.
std::size_t RecordLength(std::string_view text) {
  const std::size_t line = std::min(text.find('\n'), text.size());
  if (text.substr(0, line).find('"') == std::string_view::npos) return line;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') inside = !inside;
    if (text[i] == '\n' && !inside) return i;
  }
  return inside ? line : text.size();
}

}  // namespace

std::string CsvField(std::string_view text) {
  const bool padded = !text.empty() && (IsCsvBlank(text.front()) || IsCsvBlank(text.back()));
  if (!padded && text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
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

namespace {

// Appends a field that has quotation marks to `storage`, without them and without the blanks at its
// ends. Text outside of them is kept, as spreadsheets do. Returns the position of the comma after
// the field, or the end of `rest`; nothing when a quotation mark is not closed.
std::optional<std::size_t> ReadQuotedField(std::string_view rest, std::string& storage) {
  const std::size_t start = storage.size();
  std::size_t quoted = start;  // Text before this place came from quotation marks: it keeps blanks.
  bool inside = false;
  std::size_t i = 0;
  for (; i < rest.size() && (inside || rest[i] != ','); ++i) {
    const bool mark = rest[i] == '"';
    const bool doubled = mark && inside && rest.substr(i + 1).starts_with('"');
    if (doubled) ++i;
    if (mark && !doubled)
      inside = !inside;
    else if (inside || storage.size() > start || !IsCsvBlank(rest[i]))
      storage += rest[i];
    if (inside) quoted = storage.size();
  }
  if (inside) return std::nullopt;
  while (storage.size() > quoted && IsCsvBlank(storage.back())) storage.pop_back();
  return i;
}

}  // namespace

namespace internal {

bool NextCsvField(std::string_view& rest, std::string& storage, std::string_view& field,
                  bool& is_last) {
  // Two searches for one character each are several times as fast as one search for either.
  std::size_t end = std::min(rest.find(','), rest.size());
  field = rest.substr(0, end);
  if (field.find('"') == std::string_view::npos) {
    field = WithoutBlanks(field);
  } else {
    const std::size_t start = storage.size();
    const auto after = ReadQuotedField(rest, storage);
    if (!after) return false;
    end = *after;
    field = std::string_view(storage).substr(start);
  }
  is_last = end >= rest.size();
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return true;
}

}  // namespace internal

CsvText::CsvText(std::string_view text) : rest_(text) {
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

Result<bool> CsvText::Next() {
  while (!rest_.empty()) {
    const std::string_view first_line = WithoutBlanks(rest_.substr(0, rest_.find('\n')));
    const bool skipped = first_line.empty() || first_line.front() == '#';
    const std::size_t length =
        skipped ? std::min(rest_.find('\n'), rest_.size()) : RecordLength(rest_);
    const std::string_view record = rest_.substr(0, length);
    finished_ = length < rest_.size();
    rest_.remove_prefix(finished_ ? length + 1 : length);
    line_ = next_line_;
    next_line_ += 1 + static_cast<std::size_t>(std::ranges::count(record, '\n'));
    if (skipped) continue;
    fields_.clear();
    const std::size_t count =
        ForEachCsvField(record, storage_,
                        [this](std::size_t, std::string_view field) { fields_.push_back(field); });
    if (count == 0)
      return Error{ErrorCode::kInvalidArgument, "a quotation mark without its partner"};
    return true;
  }
  return false;
}

}  // namespace zeus
