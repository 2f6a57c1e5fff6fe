#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/job/job_overview.h"

// The savings of many jobs, summed up by job, by month, by a label such as the team, or by several
// of these.
namespace zeus {

struct SavingsGrouping {
  bool by_job = false;
  bool by_month = false;  // Months of UTC.
  // Names of labels. A job without one is in the group "".
  std::vector<std::string> labels{};
};

// Parses "job", "month", "team" or several of these, separated by commas: what is neither job nor
// month is the name of a label.
Result<SavingsGrouping> ParseSavingsGrouping(std::string_view text);

// Recurrences that ended in this time count; nullopt: all since, or until now.
struct SavingsPeriod {
  std::optional<WallTime> from{};
  std::optional<WallTime> until{};
};

// Parses the begin of a month, as in "2026-11", or a day, as in "2026-11-20", of UTC.
Result<WallTime> ParseDate(std::string_view text);

struct SavingsGroup {
  std::string job{};                  // Empty when jobs are summed up.
  std::string month{};                // "2026-11"; empty when months are summed up.
  std::vector<std::string> labels{};  // The values of SavingsGrouping::labels.
  SpanSavings sums{};
};

struct GroupedSavings {
  std::vector<SavingsGroup> groups{};  // By labels, job and month; those without recurrences not.
  SpanSavings total{};
};

GroupedSavings GroupSavings(std::span<const JobOverviews::Overview> jobs,
                            const SavingsGrouping& grouping, const SavingsPeriod& period);

}  // namespace zeus
