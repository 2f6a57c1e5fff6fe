#include "zeus/job/grouped_savings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "zeus/base/text.h"

namespace zeus {
namespace {

using std::chrono::year_month;

year_month MonthOf(WallTime time) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(time));
  return day.year() / day.month();
}

WallTime Begin(year_month month) { return std::chrono::sys_days(month / 1); }

std::string MonthText(year_month month) {
  return fmt::format("{:04}-{:02}", static_cast<int>(month.year()),
                     static_cast<unsigned>(month.month()));
}

// Reads a number of exactly `digits` digits.
std::optional<int> Digits(std::string_view text, std::size_t digits) {
  int number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || text.size() != digits ||
      number < 0)
    return std::nullopt;
  return number;
}

// The jobs of one group, before they are split into months.
struct Members {
  std::string job{};
  std::vector<std::string> labels{};
  std::vector<JobOverviews::Overview> jobs{};
};

std::vector<Members> Split(std::span<const JobOverviews::Overview> jobs,
                           const SavingsGrouping& grouping) {
  std::map<std::pair<std::vector<std::string>, std::string>, Members> split;
  for (const JobOverviews::Overview& job : jobs) {
    const JobSpec& spec = job->job.spec;
    std::vector<std::string> values;
    for (const std::string& label : grouping.labels) {
      const auto found = spec.labels.find(label);
      values.push_back(found == spec.labels.end() ? "" : found->second);
    }
    const std::string id = grouping.by_job ? spec.id : "";
    Members& members = split[{values, id}];
    members.job = id;
    members.labels = values;
    members.jobs.push_back(job);
  }
  std::vector<Members> list;
  for (auto& [key, members] : split) list.push_back(std::move(members));
  return list;
}

// The times at which recurrences of these jobs ended first and last.
std::optional<std::pair<WallTime, WallTime>> Extent(std::span<const JobOverviews::Overview> jobs) {
  std::optional<std::pair<WallTime, WallTime>> extent;
  for (const JobOverviews::Overview& job : jobs)
    for (const ChargedRecurrence& recurrence : job->charged) {
      if (!extent) extent = {recurrence.ended_at, recurrence.ended_at};
      extent->first = std::min(extent->first, recurrence.ended_at);
      extent->second = std::max(extent->second, recurrence.ended_at);
    }
  return extent;
}

// Bounds of the spans from `first` to `end`: those of months, or both ends alone.
std::vector<WallTime> Bounds(WallTime first, WallTime end, bool by_month) {
  std::vector<WallTime> bounds{first};
  if (by_month)
    for (year_month month = MonthOf(first) + std::chrono::months(1); Begin(month) < end;
         month += std::chrono::months(1))
      bounds.push_back(Begin(month));
  bounds.push_back(end);
  return bounds;
}

}  // namespace

Result<SavingsGrouping> ParseSavingsGrouping(std::string_view text) {
  SavingsGrouping grouping;
  for (const std::string_view part : SplitAtCommas(text)) {
    const std::string name(Trim(part));
    bool again = false;
    if (name.empty())
      return InvalidArgument(
          fmt::format("savings are grouped by job, month or the name of a label, as in "
                      "team,month, not {}",
                      Quote(std::string(text))));
    if (name == "job") {
      again = std::exchange(grouping.by_job, true);
    } else if (name == "month") {
      again = std::exchange(grouping.by_month, true);
    } else {
      again = std::ranges::find(grouping.labels, name) != grouping.labels.end();
      grouping.labels.push_back(name);
    }
    if (again) return InvalidArgument(fmt::format("{} is given twice", Quote(name)));
  }
  return grouping;
}

Result<WallTime> ParseDate(std::string_view text) {
  using namespace std::chrono;  // NOLINT(google-build-using-namespace): names of a calendar.
  const bool has_day = text.size() == 10 && text[7] == '-';
  if ((text.size() == 7 || has_day) && text[4] == '-') {
    const auto the_year = Digits(text.substr(0, 4), 4);
    const auto the_month = Digits(text.substr(5, 2), 2);
    const auto the_day = has_day ? Digits(text.substr(8, 2), 2) : 1;
    if (the_year && the_month && the_day) {
      const year_month_day date(year(*the_year), month(static_cast<unsigned>(*the_month)),
                                day(static_cast<unsigned>(*the_day)));
      if (date.ok()) return WallTime(sys_days(date));
    }
  }
  return InvalidArgument(
      fmt::format("{} is neither a month as in 2026-11 nor a day as in "
                  "2026-11-20",
                  Quote(std::string(text))));
}

GroupedSavings GroupSavings(std::span<const JobOverviews::Overview> jobs,
                            const SavingsGrouping& grouping, const SavingsPeriod& period) {
  GroupedSavings grouped;
  const auto extent = Extent(jobs);
  if (!extent && !(period.from && period.until)) return grouped;
  // The end of a span is no part of it.
  const WallTime first = period.from.value_or(extent ? extent->first : WallTime());
  const WallTime end =
      period.until.value_or(extent ? extent->second + std::chrono::microseconds(1) : WallTime());
  if (first >= end) return grouped;
  const std::vector<WallTime> whole{first, end};
  grouped.total = SavingsBetween(jobs, whole).front();
  const std::vector<WallTime> bounds = Bounds(first, end, grouping.by_month);
  for (Members& members : Split(jobs, grouping))
    for (SpanSavings& span : SavingsBetween(members.jobs, bounds)) {
      if (span.jobs == 0 && span.unknown.empty()) continue;
      grouped.groups.push_back({.job = members.job,
                                .month = grouping.by_month ? MonthText(MonthOf(span.from)) : "",
                                .labels = members.labels,
                                .sums = std::move(span)});
    }
  return grouped;
}

}  // namespace zeus
