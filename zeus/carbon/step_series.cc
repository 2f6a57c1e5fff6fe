#include "zeus/carbon/step_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/csv.h"
#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

using std::chrono::microseconds;

// A year of quarter-hours is about a megabyte.
constexpr std::size_t kCsvLimit = std::size_t{8} * 1024 * 1024;

Error LineError(const std::string& name, std::size_t line, std::string_view reason) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}:{}: {}", name, line, reason)};
}

using Fields = std::vector<std::string_view>;

Result<StepSeries::Row> ParseRow(const Fields& fields, CsvValues values) {
  if (fields.size() != 2)
    return Error{ErrorCode::kInvalidArgument,
                 Quote(fmt::format("{}", fmt::join(fields, ","))) + " is not a time and a number"};
  ZEUS_TRY(const WallTime time, ParseWallTime(fields[0]));
  ZEUS_TRY(const double value, ParseDouble(fields[1]));
  if (!std::isfinite(value) || (value < 0 && values == CsvValues::kNotNegative))
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is out of range", Quote(fields[1]))};
  return StepSeries::Row{.time = time, .value = value};
}

Result<std::string> ParseHeader(const Fields& fields) {
  if (fields.size() < 2 || LowerCase(fields.front()) != "time")
    return Error{ErrorCode::kInvalidArgument,
                 "the first line must be a header like time,grams_per_kwh"};
  return fmt::format("{}", fmt::join(fields.begin() + 1, fields.end(), ","));
}

}  // namespace

StepSeries::StepSeries(const std::vector<Row>& rows, Limits limits) : limits_(limits) { Add(rows); }

void StepSeries::Add(const std::vector<Row>& rows) {
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  std::ranges::stable_sort(rows_, {}, &Row::time);
  std::vector<Row> unique;
  unique.reserve(rows_.size());
  for (const Row& row : rows_) {
    if (!unique.empty() && unique.back().time == row.time) {
      unique.back() = row;
    } else {
      unique.push_back(row);
    }
  }
  rows_ = std::move(unique);
}

void StepSeries::DropBefore(WallTime time) {
  rows_.erase(rows_.begin(), std::ranges::lower_bound(rows_, time, {}, &Row::time));
}

// The time from which a row no longer holds.
WallTime StepSeries::StepEnd(Iterator row) const {
  microseconds step = std::chrono::hours(1);
  if (const auto next = std::next(row); next != rows_.end()) {
    step = next->time - row->time;
  } else if (row != rows_.begin()) {
    step = row->time - std::prev(row)->time;
  }
  return row->time + std::min(step, limits_.hold);
}

Error StepSeries::NothingFor(WallTime time) const {
  return {ErrorCode::kNotFound,
          fmt::format("no value near {}: there are values from {} to {}", ToText(time),
                      ToText(rows_.front().time), ToText(StepEnd(std::prev(rows_.end()))))};
}

Result<StepSeries::Step> StepSeries::At(WallTime time) const {
  if (rows_.empty()) return Error{ErrorCode::kNotFound, "no values"};
  const Iterator next = std::ranges::upper_bound(rows_, time, {}, &Row::time);
  if (next == rows_.begin()) {
    const ValidSpan valid{.from = next->time - limits_.reach, .until = next->time};
    if (time < valid.from) return NothingFor(time);
    return Step{.value = next->value,
                .valid = valid,
                .estimated = true,
                .note = fmt::format("no value before {}, whose is used", ToText(next->time))};
  }
  const Iterator row = std::prev(next);
  const WallTime end = StepEnd(row);
  if (time < end) {
    return Step{.value = row->value,
                .valid = {.from = row->time, .until = end},
                .estimated = row->estimated,
                .note = {}};
  }
  ValidSpan valid{.from = end, .until = end + limits_.reach};
  if (next != rows_.end()) valid.until = std::min(valid.until, next->time);
  if (time >= valid.until) return NothingFor(time);
  return Step{.value = row->value,
              .valid = valid,
              .estimated = true,
              .note = fmt::format("no value after {}, whose is used", ToText(row->time))};
}

Result<CsvSeries> ParseCsvSeries(std::string_view text, const std::string& name, CsvValues values) {
  std::vector<StepSeries::Row> rows;
  std::string column;
  CsvText csv(text);
  for (;;) {
    const Result<bool> found = csv.Next();
    if (!found.ok()) return LineError(name, csv.line(), found.error().message);
    if (!found.value()) break;
    if (column.empty()) {
      auto header = ParseHeader(csv.fields());
      if (!header.ok()) return LineError(name, csv.line(), header.error().message);
      column = std::move(header).value();
      continue;
    }
    const auto row = ParseRow(csv.fields(), values);
    if (!row.ok()) return LineError(name, csv.line(), row.error().message);
    rows.push_back(row.value());
  }
  if (rows.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 name + ": no rows: write a header like time,grams_per_kwh and a row per change"};
  }
  return CsvSeries{.column = std::move(column), .series = StepSeries(rows)};
}

Result<CsvSeries> LoadCsvSeries(const std::filesystem::path& path, CsvValues values) {
  ZEUS_TRY(const std::string text, ReadSmallFile(path, kCsvLimit));
  return ParseCsvSeries(text, Printable(path.string()), values);
}

Result<std::unique_ptr<IntensitySeries>> IntensitySeries::Load(const std::filesystem::path& path) {
  ZEUS_TRY(CsvSeries csv, LoadCsvSeries(path, CsvValues::kNotNegative));
  const std::string name = Printable(path.filename().string());
  if (csv.column != "grams_per_kwh") {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: the second column is {} and must be \"grams_per_kwh\"", name,
                             Quote(csv.column))};
  }
  return std::make_unique<IntensitySeries>(name, std::move(csv.series));
}

Result<IntensityReading> IntensitySeries::At(WallTime time) {
  auto step = series_.At(time);
  if (!step.ok()) return std::move(step).error().While(name_);
  return IntensityReading{.intensity = CarbonIntensity(step.value().value),
                          .valid = step.value().valid,
                          .source = name_,
                          .estimated = step.value().estimated,
                          .note = step.value().note};
}

}  // namespace zeus
