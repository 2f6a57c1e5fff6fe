#include "zeus/replay/job_comparison.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/parallel.h"
#include "zeus/base/statistics.h"

namespace zeus::replay {
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
  const auto of = [&](double ReplaySummary::*figure) { return Of(summaries, figure); };
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
