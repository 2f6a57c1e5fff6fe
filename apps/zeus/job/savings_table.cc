#include "apps/zeus/job/savings_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "zeus/base/csv.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/wire/overviews.h"

namespace zeus::cli {
namespace {

// The names of the columns that tell groups apart.
std::vector<std::string> Keys(const SavingsGrouping& grouping) {
  std::vector<std::string> keys = grouping.labels;
  if (grouping.by_job) keys.emplace_back("job");
  if (grouping.by_month) keys.emplace_back("month");
  return keys;
}

std::vector<std::string> Values(const SavingsGroup& group, const SavingsGrouping& grouping) {
  std::vector<std::string> values = group.labels;
  if (grouping.by_job) values.push_back(group.job);
  if (grouping.by_month) values.push_back(group.month);
  return values;
}

void AddCells(const SpanSavings& sums, std::vector<std::string>& row) {
  row.push_back(fmt::to_string(sums.jobs));
  row.push_back(fmt::to_string(sums.recurrences));
  if (sums.jobs == 0) {
    row.insert(row.end(), {"-", "not known", "", ""});
    return;
  }
  constexpr double kJoulesPerKilowattHour = 3.6e6;
  row.push_back(EnergyText(sums.charged));
  row.push_back(WithSigma(1e3 * sums.energy / kJoulesPerKilowattHour,
                          1e3 * sums.energy_sigma / kJoulesPerKilowattHour, "Wh"));
  row.push_back(
      sums.energy_percent ? ChangeWithSigma(-*sums.energy_percent, sums.energy_percent_sigma) : "");
  row.push_back(WithSigma(Seconds(sums.time), Seconds(sums.time_sigma)));
}

std::vector<std::string> CsvCells(const SpanSavings& sums) {
  const auto number = [](double value) { return fmt::format("{}", value); };
  return {fmt::to_string(sums.jobs),
          fmt::to_string(sums.recurrences),
          number(sums.charged.value()),
          number(sums.energy),
          number(sums.energy_sigma),
          sums.energy_percent ? number(*sums.energy_percent) : "",
          sums.energy_percent ? number(sums.energy_percent_sigma) : "",
          number(sums.time),
          number(sums.time_sigma),
          fmt::format("{}", fmt::join(sums.unknown, ";"))};
}

}  // namespace

std::string SavingsTable(const GroupedSavings& savings, const SavingsGrouping& grouping) {
  if (savings.groups.empty()) return "no recurrence of a job ended in this time\n";
  const std::vector<std::string> keys = Keys(grouping);
  std::vector<std::vector<std::string>> rows{keys};
  std::vector<Align> alignment(keys.size(), Align::kLeft);
  for (const char* head : {"jobs", "recurrences", "used", "saved", "energy", "time saved"}) {
    rows.front().emplace_back(head);
    alignment.push_back(Align::kRight);
  }
  for (const SavingsGroup& group : savings.groups) {
    std::vector<std::string> row;
    for (const std::string& value : Values(group, grouping))
      row.push_back(value.empty() ? "-" : Printable(value));
    AddCells(group.sums, row);
    rows.push_back(std::move(row));
  }
  std::vector<std::string> total(keys.size());
  total.front() = "all";
  AddCells(savings.total, total);
  rows.push_back(std::move(total));
  std::string text = AlignedRows(alignment, rows);
  text +=
      "against undisturbed runs of each job's default; exploration, profiling and failed runs are "
      "charged\n";
  if (!savings.total.unknown.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : savings.total.unknown) names.push_back(Printable(name));
    text += fmt::format("not known yet, and left out, for {} (zeus job savings JOB says why)\n",
                        fmt::join(names, ", "));
  }
  return text;
}

std::string SavingsCsv(const GroupedSavings& savings, const SavingsGrouping& grouping) {
  std::vector<std::string> head = Keys(grouping);
  for (const char* name : {"jobs", "recurrences", "charged_joules", "energy_joules",
                           "energy_sigma_joules", "energy_percent", "energy_sigma_percent",
                           "time_seconds", "time_sigma_seconds", "unknown_jobs"})
    head.emplace_back(name);
  std::string text = CsvRow(head) + "\n";
  for (const SavingsGroup& group : savings.groups) {
    std::vector<std::string> row = Values(group, grouping);
    for (std::string& cell : CsvCells(group.sums)) row.push_back(std::move(cell));
    text += CsvRow(row) + "\n";
  }
  return text;
}

Json SavingsJson(const GroupedSavings& savings, const SavingsGrouping& grouping) {
  Json groups = Json::array();
  for (const SavingsGroup& group : savings.groups) {
    Json json = wire::ToJson(group.sums);
    json["job"] = grouping.by_job ? Json(group.job) : Json();
    json["month"] = grouping.by_month ? Json(group.month) : Json();
    json["labels"] = Json::object();
    for (std::size_t i = 0; i < group.labels.size(); ++i)
      json["labels"][grouping.labels[i]] = group.labels[i];
    groups.push_back(std::move(json));
  }
  return {{"groups", std::move(groups)}, {"total", wire::ToJson(savings.total)}};
}

}  // namespace zeus::cli
