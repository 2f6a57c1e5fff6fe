#pragma once

#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::calibration {

// One reading of an external power meter.
struct MeterSample {
  WallTime time;
  Watts power;
};

// Reads a meter's log: comma-separated, with a header that names the columns `time` and `watts`
// (others are ignored) or without one and then in that order. Times are RFC 3339
// ("2024-05-01T12:00:00.25+02:00") or seconds since 1970. Empty lines and lines that begin with '#'
// are skipped, and so is an unfinished last line: the meter may still be writing.
//
// kInvalidArgument as "<name>:<line>: <reason>" at the first row that means nothing or whose time
// lies before that of the row above.
Result<std::vector<MeterSample>> ParseMeterCsv(std::string_view text, std::string_view name);

}  // namespace zeus::calibration
