#pragma once

#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus {

// Parses "2024-03-31T01:30:00Z", "2024-03-31T03:30:00.250+02:00", or seconds since 1970
// ("1711848600"). A time without an offset is refused: it would mean something else on another
// machine.
Result<WallTime> ParseWallTime(std::string_view text);

// RFC 3339 with whole seconds in UTC: "2024-03-31T01:30:00Z".
std::string ToText(WallTime time);

// RFC 3339 with microseconds, so that nothing is lost: "2024-03-31T01:30:00.250000Z".
std::string ToExactText(WallTime time);

}  // namespace zeus
