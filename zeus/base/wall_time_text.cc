#include "zeus/base/wall_time_text.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

#include "zeus/base/text.h"

namespace zeus {
namespace {

using std::chrono::microseconds;
using std::chrono::minutes;

Error NotATime(std::string_view text) {
  return {ErrorCode::kInvalidArgument,
          Quote(text) +
              " is no time: write 2024-03-31T01:30:00Z, with an offset, or seconds since 1970"};
}

// Takes pieces off the front of a text; remembers whether every one was there.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int Digits(std::size_t count) {
    const std::string_view digits = rest_.substr(0, count);
    int number = 0;
    ok_ = ok_ && digits.size() == count;
    for (const char c : digits) {
      ok_ = ok_ && c >= '0' && c <= '9';
      number = number * 10 + (c - '0');
    }
    rest_.remove_prefix(digits.size());
    return number;
  }

  char TakeOneOf(std::string_view allowed) {
    const char c = rest_.empty() ? '\0' : rest_.front();
    ok_ = ok_ && c != '\0' && allowed.find(c) != std::string_view::npos;
    if (!rest_.empty()) rest_.remove_prefix(1);
    return c;
  }

  // ".25" as microseconds; nothing is nothing.
  microseconds Fraction() {
    if (!rest_.starts_with('.')) return microseconds(0);
    rest_.remove_prefix(1);
    ok_ = ok_ && !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
    std::int64_t value = 0;
    for (std::int64_t unit = 100'000;
         !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; unit /= 10) {
      value += unit * (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return microseconds(value);
  }

  bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::optional<WallTime> ParseRfc3339(std::string_view text) {
  Scanner scan(text);
  const std::chrono::year year(scan.Digits(4));
  scan.TakeOneOf("-");
  const std::chrono::month month(static_cast<unsigned>(scan.Digits(2)));
  scan.TakeOneOf("-");
  const std::chrono::day day(static_cast<unsigned>(scan.Digits(2)));
  scan.TakeOneOf("Tt ");
  const int hour = scan.Digits(2);
  scan.TakeOneOf(":");
  const int minute = scan.Digits(2);
  scan.TakeOneOf(":");
  const int second = scan.Digits(2);
  const microseconds fraction = scan.Fraction();
  const char zone = scan.TakeOneOf("Zz+-");
  minutes offset(0);
  if (zone == '+' || zone == '-') {
    const int hours = scan.Digits(2);
    scan.TakeOneOf(":");
    const int extra = scan.Digits(2);
    if (hours > 23 || extra > 59) return std::nullopt;
    offset = minutes((hours * 60 + extra) * (zone == '+' ? 1 : -1));
  }
  const std::chrono::year_month_day date(year, month, day);
  // A leap second (60) is taken as the first of the next minute.
  if (!scan.complete() || !date.ok() || hour > 23 || minute > 59 || second > 60)
    return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + minutes(minute) +
         std::chrono::seconds(second) + fraction - offset;
}

}  // namespace

Result<WallTime> ParseWallTime(std::string_view text) {
  if (const auto seconds = ParseDouble(text); seconds.ok()) {
    constexpr double kYear9999 = 253'402'300'800.0;
    if (!(std::abs(seconds.value()) < kYear9999)) return NotATime(text);
    return WallTime(microseconds(std::llround(seconds.value() * 1e6)));
  }
  const std::optional<WallTime> time = ParseRfc3339(text);
  if (!time) return NotATime(text);
  return *time;
}

std::string ToText(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string ToExactText(WallTime time) {
  std::string text = ToText(time);
  text.pop_back();  // The Z comes last.
  const auto fraction = time - std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{}.{:06}Z", text, fraction.count());
}

}  // namespace zeus
