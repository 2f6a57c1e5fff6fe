#include "zeus/monitor/calibration/meter_csv.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

#include "zeus/base/text.h"

namespace zeus::calibration {
namespace {

using std::chrono::microseconds;

constexpr double kLatestTime = 253'402'300'800.0;  // The year 10000, in seconds since 1970.
constexpr double kMostWatts = 1e7;

WallTime FromSeconds(double seconds) { return WallTime(microseconds(std::llround(seconds * 1e6))); }

// "Z", "+02:00"; in seconds.
std::optional<double> ParseZone(std::string_view zone) {
  if (zone == "Z" || zone == "z") return 0;
  if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') return std::nullopt;
  const auto hours = ParseUnsigned(zone.substr(1, 2));
  const auto minutes = ParseUnsigned(zone.substr(4, 2));
  if (!hours.ok() || !minutes.ok() || hours.value() > 23 || minutes.value() > 59)
    return std::nullopt;
  const auto offset = static_cast<double>(hours.value() * 3600 + minutes.value() * 60);
  return zone[0] == '+' ? offset : -offset;
}

std::optional<WallTime> ParseRfc3339(const std::string& text) {
  struct tm parts {};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%d", &parts);
  if (rest == nullptr || (*rest != 'T' && *rest != 't' && *rest != ' ')) return std::nullopt;
  rest = ::strptime(rest + 1, "%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  const std::string_view tail(rest);
  const std::size_t zone = tail.find_first_of("Zz+-");
  if (zone == std::string_view::npos) return std::nullopt;
  double fraction = 0;
  if (zone > 0) {
    const auto parsed = ParseDouble("0" + std::string(tail.substr(0, zone)));
    if (tail[0] != '.' || !parsed.ok()) return std::nullopt;
    fraction = parsed.value();
  }
  const auto offset = ParseZone(tail.substr(zone));
  if (!offset) return std::nullopt;
  return FromSeconds(static_cast<double>(::timegm(&parts)) + fraction - *offset);
}

Result<WallTime> ParseTime(std::string_view text) {
  if (const auto seconds = ParseDouble(text);
      seconds.ok() && std::abs(seconds.value()) < kLatestTime)
    return FromSeconds(seconds.value());
  if (const auto time = ParseRfc3339(std::string(text))) return *time;
  return Error{
      ErrorCode::kInvalidArgument,
      Quote(text) +
          " is no time: write 2024-05-01T12:00:00Z, with an offset, or seconds since 1970"};
}

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
  if (ParseTime(cells[0]).ok()) return std::optional<Columns>();
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
  ZEUS_TRY(const WallTime time, ParseTime(cells[columns.time]));
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
