#include "zeus/monitor/calibration/meter_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

#include "zeus/base/csv.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::calibration {
namespace {

constexpr double kMostWatts = 1e7;

Result<Watts> ParsePower(std::string_view text) {
  const auto watts = ParseDouble(text);
  if (watts.ok() && std::abs(watts.value()) < kMostWatts) return Watts(watts.value());
  return Error{ErrorCode::kInvalidArgument, Quote(text) + " is no power in watts"};
}

// The positions of the two columns.
struct Columns {
  std::size_t time = 0;
  std::size_t watts = 1;
};

// Returns nullopt when the row is a reading.
Result<std::optional<Columns>> ParseHeader(const std::vector<std::string_view>& cells) {
  if (ParseWallTime(cells[0]).ok()) return std::optional<Columns>();
  const auto find = [&](std::string_view name) {
    const auto found =
        std::ranges::find_if(cells, [&](auto cell) { return LowerCase(cell) == name; });
    return static_cast<std::size_t>(found - cells.begin());
  };
  const Columns columns{.time = find("time"), .watts = find("watts")};
  if (columns.time == cells.size() || columns.watts == cells.size()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the first row is neither a reading nor a header with the columns time and watts"};
  }
  return std::optional(columns);
}

Result<MeterSample> ParseRow(const std::vector<std::string_view>& cells, const Columns& columns) {
  if (cells.size() <= std::max(columns.time, columns.watts)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("has {} columns and needs {}", cells.size(),
                             std::max(columns.time, columns.watts) + 1)};
  }
  ZEUS_TRY(const WallTime time, ParseWallTime(cells[columns.time]));
  ZEUS_TRY(const Watts power, ParsePower(cells[columns.watts]));
  return MeterSample{time, power};
}

// Collects samples record by record.
class Reader {
 public:
  Status Read(const std::vector<std::string_view>& cells) {
    if (!columns_) {
      ZEUS_TRY(const auto header, ParseHeader(cells));
      columns_ = header.value_or(Columns());
      if (header) return Ok();
    }
    ZEUS_TRY(const MeterSample sample, ParseRow(cells, *columns_));
    if (!samples_.empty() && sample.time < samples_.back().time) {
      return Error{ErrorCode::kInvalidArgument,
                   "its time lies before that of the row above: the meter's clock went back"};
    }
    samples_.push_back(sample);
    return Ok();
  }

  std::vector<MeterSample>&& samples() && { return std::move(samples_); }

 private:
  std::optional<Columns> columns_;
  std::vector<MeterSample> samples_;
};

}  // namespace

Result<std::vector<MeterSample>> ParseMeterCsv(std::string_view text, std::string_view name) {
  CsvText csv(text);
  Reader reader;
  for (;;) {
    const Result<bool> found = csv.Next();
    if (found.ok() && !found.value()) return std::move(reader).samples();
    Status status = found.ok() ? reader.Read(csv.fields()) : Status(found.error());
    // A meter may still be writing the last row.
    if (!status.ok() && !csv.finished()) return std::move(reader).samples();
    if (!status.ok())
      return std::move(status).error().While(fmt::format("{}:{}", Printable(name), csv.line()));
  }
}

}  // namespace zeus::calibration
