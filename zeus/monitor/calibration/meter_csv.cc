#include "zeus/monitor/calibration/meter_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

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

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t comma = line.find(',');
    cells.push_back(Trim(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

// Which cells hold what.
struct Columns {
  std::size_t time = 0;
  std::size_t watts = 1;
};

// nullopt when the row is no header.
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

// Collects samples line by line.
class Reader {
 public:
  Status Read(std::string_view line) {
    line = Trim(line);
    if (line.empty() || line.front() == '#') return Ok();
    const auto cells = Split(line);
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
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Reader reader;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const bool finished = end != std::string_view::npos;
    Status status = reader.Read(text.substr(0, end));
    if (!status.ok() && finished)
      return std::move(status).error().While(fmt::format("{}:{}", Printable(name), line));
    text.remove_prefix(finished ? end + 1 : text.size());
  }
  return std::move(reader).samples();
}

}  // namespace zeus::calibration
