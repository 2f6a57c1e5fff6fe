#include "zeus/replay/input/csv_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::replay {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Trim() of a field that rarely has anything to trim.
std::string_view Stripped(std::string_view field) {
  while (!field.empty() && IsBlank(field.front())) field.remove_prefix(1);
  while (!field.empty() && IsBlank(field.back())) field.remove_suffix(1);
  return field;
}

template <class Number>
std::optional<Number> Parse(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// The fields of a header. It is read once, and may be slow.
std::vector<std::string> HeaderFields(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view field = Stripped(line.substr(0, comma));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
      field = field.substr(1, field.size() - 2);
    fields.emplace_back(field);
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<CsvReader> CsvReader::Open(const std::filesystem::path& path, const CsvColumns& columns,
                                  RowProblems& problems) {
  ZEUS_TRY(TextSource source, TextSource::Open(path));
  return Make(std::move(source), columns, problems);
}

Result<CsvReader> CsvReader::Make(TextSource source, const CsvColumns& columns,
                                  RowProblems& problems) {
  CsvReader reader(std::move(source), problems);
  ZEUS_RETURN_IF_ERROR(reader.Start(columns));
  return reader;
}

Status CsvReader::Start(const CsvColumns& columns) {
  ZEUS_TRY(block_, source_.NextLines());
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (block_.starts_with(kByteOrderMark)) block_.remove_prefix(kByteOrderMark.size());
  if (!columns.header.empty()) return FindColumns(columns, columns.header);
  ZEUS_TRY(const bool found, NextLine());
  if (!found)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: the file is empty; it needs a first line with the columns {}",
                             name(), fmt::join(columns.required, ", "))};
  return FindColumns(columns, HeaderFields(text_));
}

Status CsvReader::FindColumns(const CsvColumns& columns, const std::vector<std::string>& header) {
  names_ = columns.required;
  names_.insert(names_.end(), columns.optional.begin(), columns.optional.end());
  present_.resize(names_.size());
  fields_.resize(names_.size());
  for (const std::string& column : header) {
    const auto found = std::ranges::find(names_, column);
    wanted_.push_back(found == names_.end() ? -1 : found - names_.begin());
    if (found == names_.end()) continue;
    auto present = present_[static_cast<std::size_t>(found - names_.begin())];
    if (present)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: column {} is there twice", name(), column)};
    present = true;
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < columns.required.size(); ++i)
    if (!present_[i]) missing.push_back(names_[i]);
  if (missing.empty()) return Ok();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{}: no column {}; the first line has {}", name(), fmt::join(missing, ", "),
                  Quote(fmt::format("{}", fmt::join(header, ","))))};
}

Result<bool> CsvReader::NextLine() {
  while (true) {
    if (block_.empty()) {
      ZEUS_TRY(block_, source_.NextLines());
      if (block_.empty()) return false;
    }
    const std::size_t end = std::min(block_.find('\n'), block_.size());
    text_ = block_.substr(0, end);
    block_.remove_prefix(std::min(end + 1, block_.size()));
    ++line_;
    while (!text_.empty() && IsBlank(text_.back())) text_.remove_suffix(1);
    if (!text_.empty()) return true;
  }
}

Result<bool> CsvReader::Next() {
  while (true) {
    ZEUS_TRY(const bool found, NextLine());
    if (!found) return false;
    const bool quoted = std::memchr(text_.data(), '"', text_.size()) != nullptr;
    if (quoted ? SplitQuoted() : Split()) return true;
  }
}

void CsvReader::Put(std::size_t column, std::string_view field) {
  if (column >= wanted_.size() || wanted_[column] < 0) return;
  fields_[static_cast<std::size_t>(wanted_[column])] = field;
}

bool CsvReader::Split() {
  std::size_t column = 0;
  const char* start = text_.data();
  const char* const end = start + text_.size();
  for (const char* at = start;; ++at) {
    if (at != end && *at != ',') continue;
    Put(column++, Stripped({start, at}));
    if (at == end) break;
    start = at + 1;
  }
  if (column == wanted_.size()) return true;
  Report(fmt::format("{} fields instead of {}", column, wanted_.size()));
  return false;
}

bool CsvReader::SplitQuoted() {
  unquoted_.clear();
  unquoted_.reserve(text_.size());  // Never moves: fields are views into it.
  std::size_t column = 0;
  std::size_t start = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= text_.size(); ++i) {
    const bool last = i == text_.size();
    if (!last && text_[i] == '"') {
      if (inside && i + 1 < text_.size() && text_[i + 1] == '"') {
        unquoted_ += text_[i++];
      } else {
        inside = !inside;
      }
    } else if (last || (text_[i] == ',' && !inside)) {
      Put(column++, Stripped(std::string_view(unquoted_).substr(start)));
      start = unquoted_.size();
    } else {
      unquoted_ += text_[i];
    }
  }
  if (inside) {
    Report("a quotation mark without its partner");
  } else if (column != wanted_.size()) {
    Report(fmt::format("{} fields instead of {}", column, wanted_.size()));
  } else {
    return true;
  }
  return false;
}

std::optional<double> CsvReader::Number(std::size_t column) {
  const auto number = Parse<double>(fields_[column]);
  if (number && std::isfinite(*number)) return number;
  Report(names_[column] + " is not a finite number", fields_[column]);
  return std::nullopt;
}

std::optional<std::int64_t> CsvReader::Integer(std::size_t column) {
  const auto number = Parse<std::int64_t>(fields_[column]);
  if (!number) Report(names_[column] + " is not a whole number", fields_[column]);
  return number;
}

void CsvReader::Report(std::string_view kind, std::string_view value, RowFate fate) {
  problems_->Add(name(), line_, kind, value, fate);
}

}  // namespace zeus::replay
