#include "zeus/replay/cluster/cluster_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"

namespace zeus::replay {
namespace {

Quantiles ComputeQuantiles(std::vector<double> values) {
  if (values.empty()) return {};
  const auto at = [&values](double share) {
    const auto place = values.begin() +
                       static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, place);
    return *place;
  };
  return {.median = at(0.5), .p95 = at(0.95), .greatest = at(1.0)};
}

std::int64_t CountOverlapping(std::span<const ClusterJob> jobs) {
  std::int64_t overlapping = 0;
  Seconds latest_end{};
  for (const ClusterJob& job : jobs) {
    overlapping += job.start < latest_end ? 1 : 0;
    latest_end = std::max(latest_end, job.end);
  }
  return overlapping;
}

double LargestTenth(std::vector<double> sizes, double jobs) {
  std::ranges::sort(sizes, std::greater<>());
  double sum = 0.0;
  for (std::size_t i = 0; i < (sizes.size() + 9) / 10; ++i) sum += sizes[i];
  return sum / jobs;
}

Json ToJson(const Quantiles& quantiles) {
  return {{"median", quantiles.median}, {"p95", quantiles.p95}, {"max", quantiles.greatest}};
}

}  // namespace

ClusterStatistics Describe(const ClusterTrace& trace) {
  ClusterStatistics statistics{.jobs = static_cast<std::int64_t>(trace.jobs.size()),
                               .groups = static_cast<std::int64_t>(trace.groups.size())};
  if (trace.jobs.empty()) return statistics;
  std::vector<double> sizes;
  std::int64_t overlapping = 0;
  for (const ClusterGroup& group : trace.groups) {
    sizes.push_back(static_cast<double>(group.job_count));
    overlapping += CountOverlapping(trace.GroupJobs(group));
    WorkloadShare& share = statistics.workloads[group.workload];
    ++share.groups;
    share.jobs += static_cast<std::int64_t>(group.job_count);
  }
  std::vector<double> runtimes;
  runtimes.reserve(trace.jobs.size());
  Seconds first = trace.jobs.front().start;
  Seconds last{};
  for (const ClusterJob& job : trace.jobs) {
    runtimes.push_back((job.end - job.start).count());
    first = std::min(first, job.start);
    last = std::max(last, job.end);
  }
  const auto jobs = static_cast<double>(trace.jobs.size());
  statistics.overlapping = static_cast<double>(overlapping) / jobs;
  statistics.largest_tenth = LargestTenth(sizes, jobs);
  statistics.group_size = ComputeQuantiles(std::move(sizes));
  statistics.runtime = ComputeQuantiles(std::move(runtimes));
  statistics.span = last - first;
  return statistics;
}

Json ToJson(const ClusterStatistics& statistics) {
  Json workloads = Json::object();
  for (const auto& [label, share] : statistics.workloads)
    workloads[label] = {{"groups", share.groups}, {"jobs", share.jobs}};
  return {{"jobs", statistics.jobs},
          {"groups", statistics.groups},
          {"group_size", ToJson(statistics.group_size)},
          {"runtime_seconds", ToJson(statistics.runtime)},
          {"jobs_of_largest_tenth_of_groups", statistics.largest_tenth},
          {"overlapping_jobs", statistics.overlapping},
          {"span_seconds", statistics.span.count()},
          {"workloads", std::move(workloads)}};
}

std::string ToText(const ClusterStatistics& statistics) {
  const Quantiles& size = statistics.group_size;
  const Quantiles& runtime = statistics.runtime;
  return fmt::format(
      "{} jobs in {} groups over {:.0f} days; groups of {:.0f} jobs (median; 95 % below {:.0f}, "
      "the largest {:.0f}), the largest tenth of the groups submits {:.0f} % of the jobs. Jobs run "
      "{:.0f} s (median; 95 % below {:.0f} s, the longest {:.0f} s); {:.0f} % start while another "
      "of their group runs.",
      statistics.jobs, statistics.groups, statistics.span.count() / 86400, size.median, size.p95,
      size.greatest, 100 * statistics.largest_tenth, runtime.median, runtime.p95, runtime.greatest,
      100 * statistics.overlapping);
}

namespace {

double UnfinishedJobs(const ClusterTotals& totals) {
  return static_cast<double>(totals.unfinished);
}

struct Amount {
  std::string_view name;
  double (*of)(const ClusterTotals&);
};

constexpr Amount kCounts[] = {
    {"jobs", [](const ClusterTotals& totals) { return static_cast<double>(totals.jobs); }},
    {"runs", [](const ClusterTotals& totals) { return static_cast<double>(totals.runs); }},
    {"retries", [](const ClusterTotals& totals) { return static_cast<double>(totals.retries); }},
    {"concurrent_runs",
     [](const ClusterTotals& totals) { return static_cast<double>(totals.concurrent); }},
    {"unfinished_jobs", UnfinishedJobs},
};
constexpr Amount kAmounts[] = {
    {"energy_joules", [](const ClusterTotals& totals) { return totals.usage.energy.value(); }},
    {"time_seconds", [](const ClusterTotals& totals) { return totals.usage.time.count(); }},
    {"cost_joules", [](const ClusterTotals& totals) { return totals.usage.cost.value(); }},
};

Json FiguresJson(const ClusterFigureSource& source) {
  Json json = Json::object();
  for (const Amount& count : kCounts) {
    const double mean = source.Of(count.of).mean;
    json[std::string(count.name)] =
        mean == std::floor(mean) ? Json(static_cast<std::int64_t>(mean)) : Json(mean);
  }
  for (const Amount& amount : kAmounts) json[std::string(amount.name)] = source.Of(amount.of).mean;
  for (const ClusterFigure& figure : ClusterFigures()) {
    const auto value = source.Of(figure.name);
    const std::string name(figure.name);
    json[name] = value ? Json(value->mean) : Json();
    if (source.replays().size() < 2) continue;
    json[name + "_sd"] = value ? Json(value->StandardDeviation()) : Json();
  }
  return json;
}

void AddSaving(Json& json, const ClusterComparison& comparison, std::size_t contender,
               std::optional<std::size_t> workload) {
  constexpr double kJoulesPerKilowattHour = 3.6e6;
  const auto saving = ComputeSaving(comparison, contender, workload);
  Json& saved = json["saved"];
  if (!saving) return;
  saved = {{"energy_percent", saving->percent},
           {"energy_sigma_percent", saving->percent_sigma},
           {"energy_joules", saving->energy.value()},
           {"energy_sigma_joules", saving->energy_sigma.value()},
           {"energy_kwh", saving->energy.value() / kJoulesPerKilowattHour},
           {"energy_sigma_kwh", saving->energy_sigma.value() / kJoulesPerKilowattHour}};
}

Json PolicyJson(const ClusterComparison& comparison, std::size_t contender) {
  Json workloads = Json::object();
  for (std::size_t i = 0; i < comparison.jobs.size(); ++i) {
    const ClusterFigureSource source(comparison, contender, i);
    if (source.replays().empty()) continue;
    Json& json = workloads[comparison.jobs[i].label];
    json = FiguresJson(source);
    AddSaving(json, comparison, contender, i);
  }
  Json total = FiguresJson(ClusterFigureSource(comparison, contender, std::nullopt));
  AddSaving(total, comparison, contender, std::nullopt);
  return {{"total", std::move(total)}, {"workloads", std::move(workloads)}};
}

report::Cell NumberCell(double value, int decimals) {
  return {.text = fmt::format("{:.{}f}", value, decimals), .value = value};
}

report::Cell FigureCell(const ClusterFigureSource& source, std::string_view figure, int decimals) {
  const auto value = source.Of(figure);
  if (!value) return {.text = "none"};
  report::Cell cell = NumberCell(value->mean, decimals);
  if (value->count > 1)
    cell.text = FixedWithSigma(value->mean, value->StandardDeviation(), decimals);
  return cell;
}

// A part of the table: a contender, and a workload or all of them.
struct RowSubject {
  const ClusterComparison& comparison;
  std::size_t contender;
  std::optional<std::size_t> workload;
};

// "0.698 ± 0.004"; a single replay gets its ± from the scatter between its groups.
report::Cell EnergyCell(const RowSubject& subject, const ClusterFigureSource& source) {
  constexpr int kEnergyDecimals = 3;
  report::Cell cell = FigureCell(source, "energy_vs_default", kEnergyDecimals);
  const auto saving = ComputeSaving(subject.comparison, subject.contender, subject.workload);
  if (!cell.value || !saving || source.replays().size() > 1) return cell;
  cell.text = FixedWithSigma(*cell.value, saving->percent_sigma / 100, kEnergyDecimals);
  return cell;
}

std::vector<report::Cell> TableRow(const RowSubject& subject, const ClusterFigureSource& source) {
  const std::string contender = subject.comparison.contenders[subject.contender];
  const std::string workload =
      subject.workload ? subject.comparison.jobs[*subject.workload].title : "all";
  constexpr double kJoulesPerMegawattHour = 3.6e9;
  std::vector<report::Cell> row{{.text = contender}, {.text = workload}};
  row.push_back(NumberCell(source.Of(kCounts[0].of).mean, 0));
  row.push_back(NumberCell(source.Of(kCounts[2].of).mean, 0));
  row.push_back(NumberCell(source.Of(kAmounts[0].of).mean / kJoulesPerMegawattHour, 2));
  row.push_back(EnergyCell(subject, source));
  for (const char* const figure : {"time_vs_default", "cost_vs_oracle"})
    row.push_back(FigureCell(source, figure, 3));
  row.push_back(FigureCell(source, "regret", 1));
  row.push_back(NumberCell(source.Of(UnfinishedJobs).mean, 0));
  return row;
}

report::Table TotalsTable(const ClusterComparison& comparison) {
  report::Table table{
      .id = "cluster-totals",
      .title = "Totals per policy and workload",
      .caption =
          "Energy, time and cost of all jobs, retries and profiling included; regret in "
          "units of the oracle's cost of a job. Unfinished: jobs of which no try reached the "
          "target. ± of the energy of one replay: one standard deviation, by the scatter between "
          "its groups.",
      .columns = {"policy", "workload", "jobs", "retries", "energy (MWh)", "energy vs default",
                  "time vs default", "cost vs oracle", "regret", "unfinished"}};
  for (std::size_t c = 0; c < comparison.contenders.size(); ++c) {
    for (std::size_t i = 0; i < comparison.jobs.size(); ++i) {
      const ClusterFigureSource source(comparison, c, i);
      if (!source.replays().empty()) table.rows.push_back(TableRow({comparison, c, i}, source));
    }
    table.rows.push_back(
        TableRow({comparison, c, std::nullopt}, ClusterFigureSource(comparison, c, std::nullopt)));
  }
  return table;
}

// Makes one bar for each workload.
report::Series Bars(const ClusterComparison& comparison, std::size_t contender,
                    std::string_view figure) {
  const std::string& name = comparison.contenders[contender];
  report::Series series{.name = name, .role = name, .mark = report::Mark::kBars};
  const bool spread = comparison.replays.size() > 1;
  for (std::size_t i = 0; i < comparison.jobs.size(); ++i) {
    const auto value = ClusterFigureSource(comparison, contender, i).Of(figure);
    if (!value) continue;
    series.x.push_back(static_cast<double>(i));
    series.y.push_back(value->mean);
    if (!spread) continue;
    series.low.push_back(value->mean - value->StandardDeviation());
    series.high.push_back(value->mean + value->StandardDeviation());
  }
  return series;
}

report::Panel BarPanel(const ClusterComparison& comparison, std::string title,
                       std::string_view figure, report::Axis y) {
  report::Panel panel{.title = std::move(title), .x = {.title = "workload"}, .y = std::move(y)};
  for (const ReplayJob& job : comparison.jobs) panel.x.categories.push_back(job.title);
  for (std::size_t c = 0; c < comparison.contenders.size(); ++c) {
    if (figure == "regret" && comparison.contenders[c] == "oracle") continue;
    panel.series.push_back(Bars(comparison, c, figure));
  }
  // A logarithmic axis keeps one contender that takes fifty times as much, as grid search does,
  // from flattening all others.
  constexpr double kLargestLinearRatio = 5.0;
  for (const report::Series& series : panel.series)
    if (std::ranges::any_of(series.y, [](double value) { return value > kLargestLinearRatio; }))
      panel.y.logarithmic = true;
  return panel;
}

std::string Change(double ratio) {
  return fmt::format("{:.1f} % {}", 100 * std::abs(1 - ratio), ratio <= 1 ? "less" : "more");
}

// ", but 12 of 100 jobs with zeus and 3 with default did not reach the target" ("and" where the
// contender has no more of them); empty if all did.
std::string Shortfall(const ClusterComparison& comparison, std::size_t contender) {
  const auto usual = static_cast<std::size_t>(std::ranges::find(comparison.contenders, "default") -
                                              comparison.contenders.begin());
  const ClusterFigureSource own(comparison, contender, std::nullopt);
  const double unfinished = own.Of(UnfinishedJobs).mean;
  const double unfinished_usual =
      ClusterFigureSource(comparison, usual, std::nullopt).Of(UnfinishedJobs).mean;
  if (unfinished == 0 && unfinished_usual == 0) return "";
  return fmt::format(
      ", {} {:.0f} of {:.0f} jobs with {} and {:.0f} with default did not reach the target",
      unfinished > unfinished_usual ? "but" : "and", std::ceil(unfinished),
      own.Of(kCounts[0].of).mean, comparison.contenders[contender], std::ceil(unfinished_usual));
}

// "zeus uses 21.5 % less energy than default (7.1 % less to 52.3 % less by workload), …"
std::optional<std::string> Finding(const ClusterComparison& comparison, std::size_t contender) {
  double least = HUGE_VAL;
  double most = 0;
  for (std::size_t i = 0; i < comparison.jobs.size(); ++i) {
    const auto energy = ClusterFigureSource(comparison, contender, i).Of("energy_vs_default");
    if (!energy) continue;
    least = std::min(least, energy->mean);
    most = std::max(most, energy->mean);
  }
  const ClusterFigureSource all(comparison, contender, std::nullopt);
  const auto energy = all.Of("energy_vs_default");
  const auto time = all.Of("time_vs_default");
  const auto saving = ComputeSaving(comparison, contender, std::nullopt);
  if (!energy || !time) return std::nullopt;
  if (!saving)
    return fmt::format(
        "What {} saves is not known: one group that was replayed once does not say how far that "
        "can be trusted (--seeds 10 does).",
        comparison.contenders[contender]);
  constexpr double kJoulesPerWattHour = 3600;
  return fmt::format("{} uses {} {} energy than default, {} ({} to {} by workload), and {} time{}.",
                     comparison.contenders[contender],
                     PercentWithSigma(std::abs(saving->percent), saving->percent_sigma),
                     saving->percent >= 0 ? "less" : "more",
                     WithSigma(std::abs(saving->energy.value()) / kJoulesPerWattHour,
                               saving->energy_sigma.value() / kJoulesPerWattHour, "Wh"),
                     Change(most), Change(least), Change(time->mean),
                     Shortfall(comparison, contender));
}

}  // namespace

Json ToJson(const ClusterComparison& comparison) {
  Json policies = Json::object();
  for (std::size_t c = 0; c < comparison.contenders.size(); ++c)
    policies[comparison.contenders[c]] = PolicyJson(comparison, c);
  return {{"gpu", comparison.jobs.front().gpu_model},
          {"eta", comparison.jobs.front().eta},
          {"source", comparison.source},
          {"replays", comparison.replays.size()},
          {"trace", ToJson(comparison.statistics)},
          {"policies", std::move(policies)},
          {"remarks", comparison.remarks}};
}

report::Figure SavingsFigure(const ClusterComparison& comparison) {
  return {.id = "figure-9",
          .title = "Energy, time and regret on a cluster",
          .caption =
              "What the jobs of a cluster take under each policy, of what they take with the "
              "default batch size at the greatest power limit (the paper's Figure 9), and the "
              "cumulative regret.",
          .panels = {BarPanel(comparison, "(a) Energy", "energy_vs_default",
                              {.title = "energy, of default", .from_zero = true}),
                     BarPanel(comparison, "(b) Time", "time_vs_default",
                              {.title = "time, of default", .from_zero = true}),
                     BarPanel(comparison, "(c) Cumulative regret", "regret",
                              {.title = "regret (oracle's cost of a job)", .from_zero = true})}};
}

report::Report ToReport(const ClusterComparison& comparison) {
  report::Report report{
      .title = "Replay of a cluster",
      .subtitle = fmt::format("{} on {}", comparison.source, comparison.jobs.front().gpu_model),
      .remarks = comparison.remarks};
  for (std::size_t c = 0; c < comparison.contenders.size(); ++c) {
    if (comparison.contenders[c] == "default") continue;
    if (auto finding = Finding(comparison, c)) report.findings.push_back(std::move(*finding));
  }
  report.sections.push_back({.title = "What each policy takes",
                             .text = (comparison.replays.size() > 1 ? "The first replay: " : "") +
                                     ToText(comparison.statistics),
                             .tables = {TotalsTable(comparison)},
                             .figures = {SavingsFigure(comparison)}});
  return report;
}

namespace {

constexpr std::array kFigures = {
    ClusterFigure{"energy_vs_default",
                  [](const ContenderTotals& own, const ContenderTotals& usual) {
                    return own.totals.usage.energy / usual.totals.usage.energy;
                  }},
    ClusterFigure{"time_vs_default",
                  [](const ContenderTotals& own, const ContenderTotals& usual) {
                    return own.totals.usage.time / usual.totals.usage.time;
                  }},
    ClusterFigure{"cost_vs_default",
                  [](const ContenderTotals& own, const ContenderTotals& usual) {
                    return own.totals.usage.cost / usual.totals.usage.cost;
                  }},
    ClusterFigure{"cost_vs_oracle",
                  [](const ContenderTotals& own, const ContenderTotals&) {
                    return own.has_oracle ? own.totals.usage.cost / own.oracle_cost : NAN;
                  }},
    ClusterFigure{"regret",
                  [](const ContenderTotals& own, const ContenderTotals&) {
                    return own.has_oracle ? own.regret : NAN;
                  }},
};

ContenderTotals ComputeTotals(const ReplayJob& job, const ClusterTotals& totals) {
  const Joules oracle = job.OracleCost();
  return {.totals = totals,
          .oracle_cost = totals.ratios * oracle,
          .regret = totals.usage.cost / oracle - totals.ratios,
          .has_oracle = job.HasOracle() || totals.jobs == 0};
}

// Sums up the totals of one workload, or of all of them.
ContenderTotals Collect(const ClusterComparison& comparison,
                        const std::vector<WorkloadTotals>& replay, std::size_t contender,
                        std::optional<std::size_t> workload) {
  ContenderTotals sum;
  for (std::size_t i = 0; i < replay.size(); ++i) {
    if (workload && i != *workload) continue;
    const ContenderTotals part = ComputeTotals(comparison.jobs[i], replay[i].contenders[contender]);
    sum.totals += part.totals;
    sum.oracle_cost += part.oracle_cost;
    sum.regret += part.regret;
    sum.has_oracle &= part.has_oracle;
  }
  return sum;
}

}  // namespace

std::span<const ClusterFigure> ClusterFigures() { return kFigures; }

ClusterFigureSource::ClusterFigureSource(const ClusterComparison& comparison, std::size_t contender,
                                         std::optional<std::size_t> workload) {
  const auto usual = static_cast<std::size_t>(std::ranges::find(comparison.contenders, "default") -
                                              comparison.contenders.begin());
  for (const std::vector<WorkloadTotals>& replay : comparison.replays) {
    ContenderTotals own = Collect(comparison, replay, contender, workload);
    if (own.totals.jobs == 0) continue;
    own_.push_back(own);
    usual_.push_back(Collect(comparison, replay, usual, workload));
  }
}

std::optional<ClusterSaving> ComputeSaving(const ClusterComparison& comparison,
                                           std::size_t contender,
                                           std::optional<std::size_t> workload) {
  EnergyScatter scatter;
  Joules own{};
  Joules usual{};
  const ClusterFigureSource source(comparison, contender, workload);
  for (const ContenderTotals& totals : source.replays()) own += totals.totals.usage.energy;
  for (const ContenderTotals& totals : source.usual()) usual += totals.totals.usage.energy;
  for (const std::vector<WorkloadTotals>& replay : comparison.replays)
    for (std::size_t i = 0; i < replay.size(); ++i)
      if (!workload || i == *workload) scatter += replay[i].scatter[contender];
  const auto groups = static_cast<double>(scatter.groups);
  const auto over_replays = source.Of("energy_vs_default");
  const bool several = over_replays && over_replays->count > 1;
  if (!(usual > Joules(0)) || (scatter.groups < 2 && !several)) return std::nullopt;
  // This is the estimator of a ratio of sums over groups; its residuals are own - ratio * default.
  const double ratio = own / usual;
  const double squares = std::max(
      scatter.own_squares + ratio * (ratio * scatter.default_squares - 2 * scatter.products), 0.0);
  double sigma = 0;
  if (scatter.groups > 1) sigma = std::sqrt(squares * groups / (groups - 1)) / usual.value();
  if (several) sigma = std::max(sigma, over_replays->StandardError());
  const Joules each = usual / static_cast<double>(source.replays().size());
  return ClusterSaving{.percent = 100 * (1 - ratio),
                       .percent_sigma = 100 * sigma,
                       .energy = (1 - ratio) * each,
                       .energy_sigma = sigma * each};
}

std::optional<SampleSummary> ClusterFigureSource::Of(std::string_view figure) const {
  const auto* const found = std::ranges::find(kFigures, figure, &ClusterFigure::name);
  std::vector<double> values;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const double value = found->of(own_[i], usual_[i]);
    // Jobs without any duration make the ratios infinite: there is nothing to compare.
    if (!std::isfinite(value)) return std::nullopt;
    values.push_back(value);
  }
  if (values.empty()) return std::nullopt;
  return Summarize(values);
}

SampleSummary ClusterFigureSource::Of(double (*value)(const ClusterTotals&)) const {
  std::vector<double> values;
  for (const ContenderTotals& own : own_) values.push_back(value(own.totals));
  return Summarize(values);
}

}  // namespace zeus::replay
