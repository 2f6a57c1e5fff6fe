#pragma once

#include <optional>
#include <string>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/command_line.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/time_zone.h"
#include "zeus/job/start_advice.h"

// The options for cleaner or cheaper hours, shared by `zeus train` and `zeus plan-start`.
namespace zeus::cli {

// As typed.
struct ShiftFlags {
  std::string goal{};
  std::string finish_by{};
  std::string max_wait{};
  std::string margin = "5min";
  std::string duration{};
  std::string forecast{};
  std::optional<double> forecast_error{};
  bool no_wait = false;
};

// The meaning of the options.
struct ShiftInvocation {
  StartWish wish{};
  CarbonOptions forecasts{};  // Where forecasts come from.
  // False: forecasts have a source of their own.
  bool same_source = true;
};

void AddShiftFlags(Verb verb, ShiftFlags& flags);
// Declares --no-wait, of verbs that run something.
void AddNoWaitFlag(Verb verb, ShiftFlags& flags);

// Returns nullopt when no shifting is wanted. `carbon` are the sources of what really comes, which
// are also those of the forecasts unless --forecast names another one. kInvalidArgument with one
// sentence when the options make no sense.
Result<std::optional<ShiftInvocation>> Interpret(const ShiftFlags& flags, CarbonOptions& carbon,
                                                 WallTime now);

// Parses a moment that lies in the future: RFC 3339 with an offset; without one it is local time,
// as in 2026-11-18T08:00; 08:00 is the next eight o'clock.
Result<WallTime> ParseFinishBy(const std::string& text, WallTime now, const TimeZone& zone);

// The time zone of this machine: that of TZ, else of /etc/localtime, else UTC.
TimeZone LocalTimeZone();

}  // namespace zeus::cli
