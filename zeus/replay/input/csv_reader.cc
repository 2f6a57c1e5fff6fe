#include "zeus/replay/input/csv_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "zeus/base/csv.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::replay {
namespace {

// Kinds may contain numbers from the input, so their count needs a limit.
constexpr std::size_t kMostKinds = 20;
constexpr std::string_view kOtherKinds = "other problems";

std::string Place(const RowProblem& problem) {
  return fmt::format("{}:{}: {}", Printable(problem.file), problem.line, problem.reason);
}

}  // namespace

void RowProblems::Add(std::string_view file, std::int64_t line, std::string_view kind,
                      std::string_view value, RowFate fate) {
  ++(fate == RowFate::kLeftOut ? left_out_ : put_right_);
  const auto known = kinds_.find(kind);
  if (known != kinds_.end()) {
    ++known->second;
  } else {
    ++kinds_[std::string(kinds_.size() < kMostKinds ? kind : kOtherKinds)];
  }
  if (first_.size() >= kept_) return;
  first_.push_back(
      {.file = std::string(file),
       .line = line,
       .reason = value.empty() ? std::string(kind) : fmt::format("{}: {}", kind, Quote(value))});
}

void RowProblems::Add(const RowProblems& others) {
  left_out_ += others.left_out_;
  put_right_ += others.put_right_;
  for (const auto& [kind, rows] : others.kinds_) kinds_[kind] += rows;
  for (const RowProblem& problem : others.first_)
    if (first_.size() < kept_) first_.push_back(problem);
}

void RowProblems::AddFile(const std::string& file, const RowProblems& of_file) {
  if (files_.insert(file).second) Add(of_file);
}

std::string RowProblems::Summary() const {
  if (empty()) return {};
  std::string text = fmt::format("{} rows left out, {} put right\n", left_out_, put_right_);
  for (const auto& [kind, rows] : kinds_) text += fmt::format("  {} rows: {}\n", rows, kind);
  for (const RowProblem& problem : first_) text += fmt::format("  {}\n", Place(problem));
  const auto named = static_cast<std::int64_t>(first_.size());
  if (named < left_out_ + put_right_)
    text += fmt::format("  and {} more\n", left_out_ + put_right_ - named);
  return text;
}

Json RowProblems::ToJson() const {
  Json kinds = Json::object();
  for (const auto& [kind, rows] : kinds_) kinds[kind] = rows;
  Json first = Json::array();
  for (const RowProblem& problem : first_)
    first.push_back(
        {{"file", Printable(problem.file)}, {"line", problem.line}, {"reason", problem.reason}});
  return {{"rows_left_out", left_out_},
          {"rows_put_right", put_right_},
          {"kinds", std::move(kinds)},
          {"first", std::move(first)}};
}

Status RowProblems::Refuse() const {
  if (empty()) return Ok();
  const std::int64_t others = left_out_ + put_right_ - 1;
  const std::string more = others > 0 ? fmt::format(" (and {} more)", others) : "";
  return Error{ErrorCode::kInvalidArgument,
               (first_.empty() ? "rows have problems" : Place(first_.front())) + more};
}

namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

template <class Number>
std::optional<Number> Parse(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
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
  std::vector<std::string> header;
  ForEachCsvField(text_, unquoted_,
                  [&](std::size_t, std::string_view field) { header.emplace_back(field); });
  return FindColumns(columns, header);
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
    if (Split()) return true;
  }
}

bool CsvReader::Split() {
  const std::size_t count =
      ForEachCsvField(text_, unquoted_, [this](std::size_t column, std::string_view field) {
        if (column < wanted_.size() && wanted_[column] >= 0)
          fields_[static_cast<std::size_t>(wanted_[column])] = field;
      });
  if (count == wanted_.size()) return true;
  Report(count == 0 ? "a quotation mark without its partner"
                    : fmt::format("{} fields instead of {}", count, wanted_.size()));
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
