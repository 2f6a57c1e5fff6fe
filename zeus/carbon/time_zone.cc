#include "zeus/carbon/time_zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr int kMaxHours = 167;  // RFC 8536 allows a week in both directions.

// Reads a rule from front to back. After the first mistake ok() stays false.
class RuleScanner {
 public:
  explicit RuleScanner(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  bool done() const { return rest_.empty(); }

  bool Skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void Expect(char c) { ok_ = Skip(c) && ok_; }

  // "CET", or anything in <>.
  void Name() {
    const bool quoted = Skip('<');
    const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
    const auto in_quotes = [&](char c) {
      return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-';
    };
    std::size_t length = 0;
    while (length < rest_.size() && (quoted ? in_quotes(rest_[length]) : letter(rest_[length])))
      ++length;
    ok_ = ok_ && length >= 3;
    rest_.remove_prefix(length);
    if (quoted) Expect('>');
  }

  int Number(int min, int max) {
    int number = 0;
    std::size_t length = 0;
    for (; length < rest_.size() && length < 4; ++length) {
      const char c = rest_[length];
      if (c < '0' || c > '9') break;
      number = number * 10 + (c - '0');
    }
    ok_ = ok_ && length > 0 && number >= min && number <= max;
    rest_.remove_prefix(length);
    return number;
  }

  // "-3:30", "+2", "02:00:00"
  seconds Time() {
    const bool negative = Skip('-');
    if (!negative) Skip('+');
    seconds time = std::chrono::hours(Number(0, kMaxHours));
    if (Skip(':')) {
      time += std::chrono::minutes(Number(0, 59));
      if (Skip(':')) time += seconds(Number(0, 59));
    }
    return negative ? -time : time;
  }

  ClockChange Change() {
    ClockChange change{.kind = ClockChange::Kind::kDaysSinceNewYear};
    if (Skip('M')) {
      change.kind = ClockChange::Kind::kWeekdayOfMonth;
      change.month = Number(1, 12);
      Expect('.');
      change.week = Number(1, 5);
      Expect('.');
      change.day = Number(0, 6);
    } else if (Skip('J')) {
      change.kind = ClockChange::Kind::kDayWithoutLeap;
      change.day = Number(1, 365);
    } else {
      change.day = Number(0, 365);
    }
    if (Skip('/')) change.time = Time();
    return change;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

local_days Day(const ClockChange& change, std::chrono::year year) {
  const local_days new_year(year / std::chrono::January / 1);
  switch (change.kind) {
    case ClockChange::Kind::kDaysSinceNewYear:
      return new_year + std::chrono::days(change.day);
    case ClockChange::Kind::kDayWithoutLeap: {
      const bool after_leap_day = year.is_leap() && change.day >= 60;
      return new_year + std::chrono::days(change.day - 1 + (after_leap_day ? 1 : 0));
    }
    case ClockChange::Kind::kWeekdayOfMonth:
      break;
  }
  const auto month = year / std::chrono::month(static_cast<unsigned>(change.month));
  const std::chrono::weekday weekday(static_cast<unsigned>(change.day));
  if (change.week == 5) return local_days(month / weekday[std::chrono::last]);
  return local_days(month / weekday[static_cast<unsigned>(change.week)]);
}

}  // namespace

local_seconds ClockChange::In(std::chrono::year year) const { return Day(*this, year) + time; }

Result<PosixTimeZone> PosixTimeZone::Parse(std::string_view text) {
  PosixTimeZone zone;
  RuleScanner scan(text);
  scan.Name();
  zone.standard_ = -scan.Time();  // POSIX counts west of Greenwich as positive.
  if (scan.ok() && !scan.done()) {
    scan.Name();
    Summer summer{.offset = zone.standard_ + std::chrono::hours(1), .begin = {}, .end = {}};
    if (!scan.Skip(',')) {
      summer.offset = -scan.Time();
      scan.Expect(',');
    }
    summer.begin = scan.Change();
    scan.Expect(',');
    summer.end = scan.Change();
    zone.summer_ = summer;
  }
  if (!scan.ok() || !scan.done()) {
    return Error{ErrorCode::kInvalidArgument,
                 Quote(text) + " is no time zone rule like CET-1CEST,M3.5.0,M10.5.0/3"};
  }
  return zone;
}

UtcOffset PosixTimeZone::At(sys_seconds time) const {
  if (!summer_)
    return {.offset = standard_, .from = sys_seconds::min(), .until = sys_seconds::max()};
  struct Transition {
    sys_seconds time;
    seconds offset;  // From then on.
  };
  // Two years to both sides: a change may lie a week beyond New Year, and there must always be one
  // before and one after.
  constexpr std::size_t kYears = 5;
  std::array<Transition, 2 * kYears> transitions{};
  const std::chrono::year_month_day today(std::chrono::floor<std::chrono::days>(time));
  for (std::size_t i = 0; i < kYears; ++i) {
    const std::chrono::year year = today.year() + std::chrono::years(static_cast<int>(i) - 2);
    const auto begin = summer_->begin.In(year).time_since_epoch() - standard_;
    const auto end = summer_->end.In(year).time_since_epoch() - summer_->offset;
    transitions[2 * i] = {sys_seconds(begin), summer_->offset};
    transitions[2 * i + 1] = {sys_seconds(end), standard_};
  }
  std::ranges::stable_sort(transitions, {}, &Transition::time);
  const auto next = std::ranges::upper_bound(transitions, time, {}, &Transition::time);
  const auto present = std::prev(next);
  return {.offset = present->offset, .from = present->time, .until = next->time};
}

namespace {

constexpr std::size_t kHeaderSize = 44;
constexpr std::size_t kMaxCount = 10'000;  // Real files have a few hundred transitions.

Error Corrupt(const char* what) {
  return {ErrorCode::kInvalidArgument, fmt::format("not a time zone file ({})", what)};
}

std::int64_t BigEndian(std::string_view bytes) {
  std::uint64_t number = (static_cast<unsigned char>(bytes.front()) & 0x80U) != 0 ? ~0ULL : 0;
  for (const char c : bytes) number = (number << 8U) | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(number);
}

// The numbers of entries in a block of the file.
struct Counts {
  std::size_t universal, standard, leaps, transitions, types, letters;

  std::size_t BlockSize(std::size_t time_size) const {
    return transitions * (time_size + 1) + types * 6 + letters + leaps * (time_size + 4) +
           standard + universal;
  }
};

Result<Counts> ReadHeader(std::string_view file) {
  if (file.size() < kHeaderSize || !file.starts_with("TZif")) return Corrupt("header");
  if (file[4] < '2') return Corrupt("version 1: install a newer tzdata");
  std::array<std::size_t, 6> counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t count = BigEndian(file.substr(20 + 4 * i, 4));
    if (count < 0 || static_cast<std::size_t>(count) > kMaxCount) return Corrupt("counts");
    counts[i] = static_cast<std::size_t>(count);
  }
  return Counts{counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]};
}

bool LooksLikeARule(std::string_view name) {
  return name.find_first_of("<,") != std::string_view::npos;
}

// Names become paths, so they must not leave the directory.
bool IsZoneName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '/';
  };
  return !name.empty() && name.front() != '/' && std::ranges::all_of(name, allowed);
}

}  // namespace

Result<TimeZone> TimeZone::Parse(std::string_view file) {
  // The first block has 32-bit times for old readers; the second one is read.
  ZEUS_TRY(const Counts old, ReadHeader(file));
  const std::size_t skipped = kHeaderSize + old.BlockSize(4);
  if (file.size() < skipped) return Corrupt("length");
  file.remove_prefix(skipped);
  ZEUS_TRY(const Counts counts, ReadHeader(file));
  file.remove_prefix(kHeaderSize);
  if (counts.types == 0 || file.size() < counts.BlockSize(8)) return Corrupt("length");

  const std::string_view times = file.substr(0, counts.transitions * 8);
  const std::string_view kinds = file.substr(times.size(), counts.transitions);
  const std::string_view types = file.substr(times.size() + kinds.size(), counts.types * 6);
  const auto offset_of = [&](std::size_t type) {
    return seconds(BigEndian(types.substr(type * 6, 4)));
  };
  TimeZone zone;
  zone.first_offset_ = offset_of(0);
  for (std::size_t i = 0; i < counts.transitions; ++i) {
    const auto type = static_cast<std::size_t>(static_cast<unsigned char>(kinds[i]));
    if (type >= counts.types) return Corrupt("types");
    const sys_seconds time(seconds(BigEndian(times.substr(i * 8, 8))));
    if (i > 0 && time <= zone.transitions_.back().time) return Corrupt("order");
    zone.transitions_.push_back({.time = time, .offset = offset_of(type)});
  }
  const std::string_view footer = Trim(file.substr(counts.BlockSize(8)));
  if (!footer.empty()) {
    ZEUS_TRY(zone.rule_, PosixTimeZone::Parse(footer));
  }
  return zone;
}

Result<TimeZone> TimeZone::Load(std::string_view name, const std::filesystem::path& directory) {
  if (name == "UTC") return TimeZone();
  if (LooksLikeARule(name)) {
    TimeZone zone;
    ZEUS_TRY(zone.rule_, PosixTimeZone::Parse(name));
    return zone;
  }
  if (!IsZoneName(name)) {
    return Error{ErrorCode::kInvalidArgument,
                 Quote(name) + " is no time zone: write one like Europe/Berlin"};
  }
  const auto file = ReadSmallFile(directory / name);
  if (!file.ok()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("no time zone {} ({}): write one like Europe/Berlin, install tzdata, "
                             "or give a rule like CET-1CEST,M3.5.0,M10.5.0/3",
                             Quote(name), file.error().message)};
  }
  auto zone = Parse(file.value());
  if (!zone.ok()) return std::move(zone).error().While((directory / name).string());
  return zone;
}

UtcOffset TimeZone::OffsetAt(WallTime wall) const {
  const auto time = std::chrono::floor<seconds>(wall);
  const auto next = std::ranges::upper_bound(transitions_, time, {}, &Transition::time);
  UtcOffset answer{
      .offset = first_offset_, .from = sys_seconds::min(), .until = sys_seconds::max()};
  if (next != transitions_.begin()) {
    answer.offset = std::prev(next)->offset;
    answer.from = std::prev(next)->time;
  }
  if (next != transitions_.end()) {
    answer.until = next->time;
  } else if (rule_) {
    const UtcOffset by_rule = rule_->At(time);
    answer = {.offset = by_rule.offset,
              .from = std::max(by_rule.from, answer.from),
              .until = by_rule.until};
  }
  return answer;
}

std::chrono::local_seconds TimeZone::ToLocal(WallTime time) const {
  return std::chrono::local_seconds(
      (std::chrono::floor<seconds>(time) + OffsetAt(time).offset).time_since_epoch());
}

}  // namespace zeus
