#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/posix_time_zone.h"

namespace zeus {

inline constexpr const char* kZoneInfoDirectory = "/usr/share/zoneinfo";

// The local time of a place, including past and future clock changes. Reads the time zone files of
// the system (RFC 8536) and POSIX rules; docs/adr/0031-libraries-or-our-own.md says why no library
// does. Immutable, thread-safe.
class TimeZone {
 public:
  // "Europe/Berlin", "UTC", or a POSIX rule "CET-1CEST,M3.5.0,M10.5.0/3" where there is no file.
  static Result<TimeZone> Load(std::string_view name,
                               const std::filesystem::path& directory = kZoneInfoDirectory);
  // Parses the content of a time zone file.
  static Result<TimeZone> Parse(std::string_view file);

  UtcOffset OffsetAt(WallTime time) const;
  std::chrono::local_seconds ToLocal(WallTime time) const;

 private:
  struct Transition {
    std::chrono::sys_seconds time;
    std::chrono::seconds offset;  // Holds from then on.
  };

  std::chrono::seconds first_offset_{0};
  std::vector<Transition> transitions_;  // Sorted by time.
  std::optional<PosixTimeZone> rule_;    // Holds after the last transition.
};

}  // namespace zeus
