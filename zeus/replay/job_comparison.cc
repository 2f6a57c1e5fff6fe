#include "zeus/replay/job_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/parallel.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/statistics.h"

namespace zeus::replay {
namespace {

constexpr std::int64_t kLastRecurrences = 5;
constexpr std::int64_t kEarlyRecurrences = 50;

}  // namespace

ReplaySummarizer::ReplaySummarizer(const ReplayJob& job, std::int64_t recurrences)
    : usual_(job.DefaultUsage()),
      least_(job.HasOracle() ? job.OracleCost() : Joules(std::numeric_limits<double>::quiet_NaN())),
      recurrences_(recurrences) {}

void ReplaySummarizer::Add(const ReplayedRecurrence& recurrence) {
  const Usage& usage = recurrence.usage;
  const double cost = usage.cost / least_;
  summary_.usage += usage;
  summary_.regret += cost - 1;
  if (added_ < kEarlyRecurrences) summary_.regret_of_50 = summary_.regret;
  if (!recurrence.runs.back().converged) ++summary_.unfinished;
  for (const ReplayedRun& run : recurrence.runs) {
    if (run.epochs == 0) continue;
    ++summary_.runs;
    if (!run.converged) ++summary_.stopped;
  }
  if (added_++ < recurrences_ - kLastRecurrences) return;
  const auto latest = static_cast<double>(std::min(recurrences_, kLastRecurrences));
  summary_.last_five_energy += usage.energy / usual_.energy / latest;
  summary_.last_five_time += usage.time / usual_.time / latest;
  summary_.last_five_cost += cost / latest;
}

Result<ReplaySummary> ReplaySeed(const ReplayJob& job, const ContenderSpec& spec,
                                 std::uint64_t seed, std::int64_t recurrences) {
  ZEUS_TRY(JobReplay replay, JobReplay::Make(job, spec, seed));
  ReplaySummarizer summarizer(job, recurrences);
  for (std::int64_t t = 0; t < recurrences; ++t) summarizer.Add(replay.Next());
  return summarizer.summary();
}

Result<std::vector<ReplaySummary>> ReplaySeeds(const ReplayJob& job, const ContenderSpec& spec,
                                               int seeds) {
  std::vector<ReplaySummary> summaries;
  for (int seed = 0; seed < seeds; ++seed) {
    ZEUS_TRY(const ReplaySummary summary,
             ReplaySeed(job, spec, static_cast<std::uint64_t>(seed), job.recurrences()));
    summaries.push_back(summary);
  }
  return summaries;
}

SampleSummary SummarizeFigure(const std::vector<ReplaySummary>& summaries,
                              double ReplaySummary::*figure) {
  std::vector<double> values;
  values.reserve(summaries.size());
  for (const ReplaySummary& summary : summaries) values.push_back(summary.*figure);
  return Summarize(values);
}

namespace {

using report::Cell;

Cell NumberCell(const SampleSummary& summary, int decimals) {
  if (!std::isfinite(summary.mean)) return {.text = "-"};
  return {.text = FixedWithSigma(summary.mean, summary.StandardError(), decimals),
          .value = summary.mean};
}

Cell UnfinishedCell(double recurrences) {
  return {.text = fmt::format("{:.4g}", recurrences), .value = recurrences};
}

report::Table MakeTable(const JobComparison& comparison) {
  report::Table table{
      .id = "replay-job",
      .title = "Policies",
      .caption =
          "Energy and time of the last five recurrences as shares of those of the default "
          "batch size at full power; costs and cumulative regret in units of the oracle's "
          "cost. Means over the seeds and their standard errors. Unfinished: recurrences "
          "of which no try reached the target.",
      .columns = {"policy", "energy of last 5", "time of last 5", "cost of last 5",
                  "regret of first 50", "regret", "unfinished"}};
  for (const ContenderReplays& replays : comparison.contenders) {
    const std::vector<ReplaySummary> summaries = replays.Summaries();
    table.rows.push_back(
        {{.text = replays.spec.name},
         NumberCell(SummarizeFigure(summaries, &ReplaySummary::last_five_energy), 3),
         NumberCell(SummarizeFigure(summaries, &ReplaySummary::last_five_time), 3),
         NumberCell(SummarizeFigure(summaries, &ReplaySummary::last_five_cost), 3),
         NumberCell(SummarizeFigure(summaries, &ReplaySummary::regret_of_50), 2),
         NumberCell(SummarizeFigure(summaries, &ReplaySummary::regret), 2),
         UnfinishedCell(SummarizeFigure(summaries, &ReplaySummary::unfinished).mean)});
  }
  return table;
}

// One standard deviation between seeds to each side of the mean.
report::Series RegretSeries(const JobComparison& comparison, const ContenderReplays& replays) {
  report::Series series{.name = replays.spec.name, .role = replays.spec.name};
  for (std::size_t i = 0; i < comparison.marks.size(); ++i) {
    std::vector<double> values;
    for (const SeedReplay& seed : replays.seeds) values.push_back(seed.regret[i]);
    const SampleSummary summary = Summarize(values);
    series.x.push_back(static_cast<double>(comparison.marks[i]));
    series.y.push_back(summary.mean);
    series.low.push_back(summary.mean - summary.StandardDeviation());
    series.high.push_back(summary.mean + summary.StandardDeviation());
  }
  return series;
}

report::Figure RegretFigure(const JobComparison& comparison) {
  report::Panel panel{.title = comparison.job->name(),
                      .x = {.title = "recurrence"},
                      .y = {.title = "cumulative regret (cost of the oracle)", .from_zero = true}};
  for (const ContenderReplays& replays : comparison.contenders)
    panel.series.push_back(RegretSeries(comparison, replays));
  return {.id = "replay-job-regret",
          .title = "Cumulative regret",
          .caption =
              "What is paid above the oracle's choice until a recurrence: the flatter, the "
              "less there is left to learn.",
          .panels = {std::move(panel)}};
}

report::Panel LatestPanel(const JobComparison& comparison, double ReplaySummary::*figure,
                          std::string title) {
  report::Panel panel{.title = title, .y = {.title = title + " (default = 1)", .from_zero = true}};
  for (std::size_t i = 0; i < comparison.contenders.size(); ++i) {
    const ContenderReplays& replays = comparison.contenders[i];
    const SampleSummary summary = SummarizeFigure(replays.Summaries(), figure);
    const double spread = summary.StandardDeviation();
    panel.x.categories.push_back(replays.spec.name);
    panel.series.push_back({.name = replays.spec.name,
                            .role = replays.spec.name,
                            .mark = report::Mark::kBars,
                            .x = {static_cast<double>(i)},
                            .y = {summary.mean},
                            .low = {summary.mean - spread},
                            .high = {summary.mean + spread}});
  }
  return panel;
}

report::Figure LatestFigure(const JobComparison& comparison) {
  return {.id = "replay-job-latest",
          .title = "The last five recurrences",
          .caption =
              "Energy and time to the target once a policy has learned, beside the default "
              "batch size at full power.",
          .panels = {LatestPanel(comparison, &ReplaySummary::last_five_energy, "energy"),
                     LatestPanel(comparison, &ReplaySummary::last_five_time, "time")}};
}

// ", which reaches the target in 3 of 4 recorded runs", unless it does in all.
std::string ArrivalOfDefault(const ReplayJob& job) {
  const ReplayArm& usual = job.arm(job.default_batch_size);
  const std::size_t arriving = usual.RunsThatArrive(job.max_epochs);
  if (arriving == usual.epochs_to_target.size()) return "";
  return fmt::format(", which reaches the target in {} of {} recorded runs", arriving,
                     usual.epochs_to_target.size());
}

std::vector<std::string> Findings(const JobComparison& comparison) {
  const ReplayJob& job = *comparison.job;
  std::vector<std::string> findings;
  if (job.HasOracle()) {
    const Usage best = job.OracleUsage();
    const Usage usual = job.DefaultUsage();
    findings.push_back(fmt::format(
        "The least cost is that of batch size {} at {:g} W: {:.1f} % less energy and {:.1f} % {} "
        "time than batch size {} at {:g} W{}.",
        job.oracle().batch_size, job.oracle().best_limit.value(),
        100 * (1 - best.energy / usual.energy), 100 * std::abs(1 - best.time / usual.time),
        best.time > usual.time ? "more" : "less", job.default_batch_size,
        job.arm(job.default_batch_size).limits.back().limit.value(), ArrivalOfDefault(job)));
  }
  for (const ContenderReplays& replays : comparison.contenders) {
    const double unfinished = SummarizeFigure(replays.Summaries(), &ReplaySummary::unfinished).mean;
    if (unfinished > 0)
      findings.push_back(fmt::format("With {}, {:.4g} of {} recurrences do not reach the target.",
                                     replays.spec.name, unfinished, comparison.recurrences));
  }
  return findings;
}

}  // namespace

report::Report MakeReport(const JobComparison& comparison) {
  const ReplayJob& job = *comparison.job;
  const std::size_t seeds =
      comparison.contenders.empty() ? 0 : comparison.contenders.front().seeds.size();
  report::Report made{.title = fmt::format("Replay of {} on {}", job.title, job.gpu_model),
                      .subtitle = fmt::format("eta {:g}, {} recurrences, {} seeds", job.eta,
                                              comparison.recurrences, seeds),
                      .findings = Findings(comparison),
                      .remarks = job.remarks};
  report::Section section{.title = "Comparison", .tables = {MakeTable(comparison)}};
  if (job.HasOracle())
    section.figures.push_back(RegretFigure(comparison));
  else
    made.remarks.push_back(
        "No batch size reaches the target in all of its runs: there is no oracle, and regret is "
        "undefined.");
  section.figures.push_back(LatestFigure(comparison));
  made.sections.push_back(std::move(section));
  return made;
}

namespace {

constexpr std::int64_t kMostMarks = 300;

// Evenly spaced; the last recurrence is one of them.
std::vector<std::int64_t> Marks(std::int64_t recurrences) {
  std::vector<std::int64_t> marks;
  const std::int64_t count = std::min(recurrences, kMostMarks);
  for (std::int64_t i = 1; i <= count; ++i) marks.push_back(i * recurrences / count);
  return marks;
}

Result<SeedReplay> ReplayOne(const JobComparison& comparison, const ContenderSpec& spec,
                             std::uint64_t seed, bool keep_history) {
  ZEUS_TRY(JobReplay replay, JobReplay::Make(*comparison.job, spec, seed));
  ReplaySummarizer summarizer(*comparison.job, comparison.recurrences);
  SeedReplay done;
  auto mark = comparison.marks.begin();
  for (std::int64_t t = 1; t <= comparison.recurrences; ++t) {
    const ReplayedRecurrence& recurrence = replay.Next();
    summarizer.Add(recurrence);
    if (keep_history)
      done.history.insert(done.history.end(), recurrence.runs.begin(), recurrence.runs.end());
    if (t != *mark) continue;
    done.regret.push_back(summarizer.summary().regret);
    ++mark;
  }
  done.summary = summarizer.summary();
  return done;
}

// No number where there is none to give: JSON has no other way.

Json KnobsJson(const ReplayArm& arm, Watts limit, const Usage& usage) {
  return {{"batch_size", arm.batch_size},
          {"power_limit_watts", limit.value()},
          {"cost", usage.cost.value()},
          {"eta_joules", usage.energy.value()},
          {"tta_seconds", usage.time.count()}};
}

Json HistoryJson(const std::vector<ReplayedRun>& history) {
  Json runs = Json::array();
  for (const ReplayedRun& run : history)
    runs.push_back({{"recurrence", run.recurrence},
                    {"attempt", run.attempt},
                    {"batch_size", run.batch_size},
                    {"power_limit_watts", run.limit.value()},
                    {"profiled_limits", run.profiled_limits},
                    {"converged", run.converged},
                    {"epochs", run.epochs},
                    {"energy_joules", run.usage.energy.value()},
                    {"time_seconds", run.usage.time.count()},
                    {"cost", run.usage.cost.value()}});
  return runs;
}

Json ContenderJson(const ContenderReplays& replays) {
  const std::vector<ReplaySummary> summaries = replays.Summaries();
  const auto of = [&](double ReplaySummary::*figure) { return SummarizeFigure(summaries, figure); };
  const SampleSummary regret = of(&ReplaySummary::regret);
  Json json = {{"eta5_vs_default", FiniteOrNull(of(&ReplaySummary::last_five_energy).mean)},
               {"tta5_vs_default", FiniteOrNull(of(&ReplaySummary::last_five_time).mean)},
               {"cost5_vs_oracle", FiniteOrNull(of(&ReplaySummary::last_five_cost).mean)},
               {"regret50", FiniteOrNull(of(&ReplaySummary::regret_of_50).mean)},
               {"regret", FiniteOrNull(regret.mean)},
               {"regret_sem", FiniteOrNull(regret.StandardError())},
               {"eta5_sem", FiniteOrNull(of(&ReplaySummary::last_five_energy).StandardError())},
               {"tta5_sem", FiniteOrNull(of(&ReplaySummary::last_five_time).StandardError())},
               {"regret50_sem", FiniteOrNull(of(&ReplaySummary::regret_of_50).StandardError())}};
  Usage total;
  std::int64_t runs = 0, stopped = 0;
  for (const ReplaySummary& summary : summaries) {
    total += summary.usage;
    runs += summary.runs;
    stopped += summary.stopped;
  }
  const double share = 1.0 / static_cast<double>(summaries.size());
  json["energy_joules"] = share * total.energy.value();
  json["time_seconds"] = share * total.time.count();
  json["cost"] = share * total.cost.value();
  json["runs"] = share * static_cast<double>(runs);
  json["unfinished_recurrences"] = of(&ReplaySummary::unfinished).mean;
  json["runs_stopped"] = share * static_cast<double>(stopped);
  if (!replays.seeds.front().history.empty()) {
    Json histories = Json::array();
    for (const SeedReplay& seed : replays.seeds) histories.push_back(HistoryJson(seed.history));
    json["histories"] = std::move(histories);
  }
  return json;
}

}  // namespace

std::vector<ReplaySummary> ContenderReplays::Summaries() const {
  std::vector<ReplaySummary> summaries;
  summaries.reserve(seeds.size());
  for (const SeedReplay& seed : seeds) summaries.push_back(seed.summary);
  return summaries;
}

Result<JobComparison> Compare(const ReplayJob& job, const ComparisonRequest& request) {
  JobComparison comparison{
      .job = &job,
      .recurrences = request.recurrences > 0 ? request.recurrences : job.recurrences()};
  comparison.marks = Marks(comparison.recurrences);
  const auto seeds = static_cast<std::size_t>(request.seeds);
  for (const ContenderSpec& spec : request.contenders) {
    ZEUS_RETURN_IF_ERROR(MakeContender(job, spec, 0));
    comparison.contenders.push_back({.spec = spec, .seeds = std::vector<SeedReplay>(seeds)});
  }
  std::vector<std::optional<Error>> errors(comparison.contenders.size() * seeds);
  ForEachIndex(errors.size(), request.threads, [&](std::size_t index) {
    ContenderReplays& replays = comparison.contenders[index / seeds];
    auto done = ReplayOne(comparison, replays.spec, index % seeds, request.histories);
    if (done.ok())
      replays.seeds[index % seeds] = std::move(done).value();
    else
      errors[index] = done.error();
    if (request.seed_done) request.seed_done();
  });
  for (const std::optional<Error>& error : errors)
    if (error) return *error;
  return comparison;
}

Json ToJson(const JobComparison& comparison) {
  const ReplayJob& job = *comparison.job;
  Json json = {
      {"gpu", job.gpu_model},
      {"workload", job.label},
      {"eta", job.eta},
      {"max_power_watts", job.max_power.value()},
      {"recurrences", comparison.recurrences},
      {"seeds", comparison.contenders.empty() ? 0 : comparison.contenders[0].seeds.size()}};
  json["oracle"] = job.HasOracle()
                       ? KnobsJson(job.oracle(), job.oracle().best_limit, job.OracleUsage())
                       : Json();
  const ReplayArm& usual = job.arm(job.default_batch_size);
  json["default"] = KnobsJson(usual, usual.limits.back().limit, job.DefaultUsage());
  Json policies = Json::object();
  for (const ContenderReplays& replays : comparison.contenders)
    policies[replays.spec.name] = ContenderJson(replays);
  json["policies"] = std::move(policies);
  Json remarks = Json(job.remarks);
  if (!job.HasOracle())
    remarks.push_back(job.name() +
                      ": no batch size reaches the target in all of its runs: there is no oracle, "
                      "regret is undefined, and policies degrade to the default batch size");
  json["remarks"] = std::move(remarks);
  return json;
}

}  // namespace zeus::replay
