#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus {

// The offset of local time from UTC (positive east of Greenwich), and the span [from, until) for
// which it holds.
struct UtcOffset {
  std::chrono::seconds offset;
  std::chrono::sys_seconds from;
  std::chrono::sys_seconds until;
};

// A day of the year on which clocks change, as POSIX writes it: M3.5.0 (last Sunday in March), J60
// (day 60, never counting 29 February) or 59 (days since New Year), and when: /2, /-1, /26:30.
struct ClockChange {
  enum class Kind { kWeekdayOfMonth, kDayWithoutLeap, kDaysSinceNewYear } kind;
  int month = 0;
  int week = 0;  // 5 is the last.
  int day = 0;   // Weekday (0 is Sunday), or the day of the other kinds.
  std::chrono::seconds time{7200};

  // The moment of the change, in the local time before it.
  std::chrono::local_seconds In(std::chrono::year year) const;
};

// The rule for local time that POSIX puts into TZ: "CET-1CEST,M3.5.0,M10.5.0/3". Immutable.
class PosixTimeZone {
 public:
  static Result<PosixTimeZone> Parse(std::string_view text);

  UtcOffset At(std::chrono::sys_seconds time) const;

 private:
  struct Summer {
    std::chrono::seconds offset;
    ClockChange begin;
    ClockChange end;
  };

  std::chrono::seconds standard_{0};
  std::optional<Summer> summer_;
};

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
