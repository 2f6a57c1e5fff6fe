#include "zeus/replay/cluster/cluster_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "zeus/base/parallel.h"
#include "zeus/base/text.h"

// Every pair of group and contender is an independent task, and tasks are spread over threads.
// Determinism comes from two rules: the seed of a task depends only on the name of the group and
// the number of the replay, and results are summed in the order of the groups after all tasks have
// finished, because sums of doubles depend on their order.

namespace zeus::replay {
namespace {

// Returns for each group the index of its job in `jobs`.
Result<std::vector<std::size_t>> JobsOfGroups(const ClusterTrace& trace,
                                              std::span<const ReplayJob> jobs) {
  std::vector<std::size_t> indices;
  indices.reserve(trace.groups.size());
  for (const ClusterGroup& group : trace.groups) {
    const auto found = std::ranges::find(jobs, group.workload, &ReplayJob::label);
    if (found == jobs.end())
      return Error{ErrorCode::kNotFound,
                   fmt::format("group {} runs {}, of which nothing is recorded", Quote(group.id),
                               Quote(group.workload))};
    indices.push_back(static_cast<std::size_t>(found - jobs.begin()));
  }
  return indices;
}

// Returns the groups with the most jobs first, so that no thread starts a long task last.
std::vector<std::size_t> LargestFirst(const ClusterTrace& trace) {
  std::vector<std::size_t> order(trace.groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&trace](std::size_t i) { return trace.groups[i].job_count; });
  return order;
}

}  // namespace

void EnergyScatter::Add(Joules own, Joules usual) {
  *this += {.groups = 1,
            .own_squares = own.value() * own.value(),
            .products = own.value() * usual.value(),
            .default_squares = usual.value() * usual.value()};
}

EnergyScatter& EnergyScatter::operator+=(const EnergyScatter& other) {
  groups += other.groups;
  own_squares += other.own_squares;
  products += other.products;
  default_squares += other.default_squares;
  return *this;
}

Result<std::vector<WorkloadTotals>> ReplayCluster(const ClusterTrace& trace,
                                                  std::span<const ReplayJob> jobs,
                                                  const ClusterReplayOptions& options) {
  ZEUS_TRY(const std::vector<std::size_t> job_of, JobsOfGroups(trace, jobs));
  const std::size_t contenders = options.contenders.size();
  const std::vector<std::size_t> order = LargestFirst(trace);
  std::vector<Result<ClusterTotals>> results(order.size() * contenders, ClusterTotals{});
  ForEachIndex(results.size(), options.threads, [&](std::size_t task) {
    const std::size_t group = order[task / contenders];
    const std::size_t contender = task % contenders;
    const ClusterGroup& submitted = trace.groups[group];
    results[group * contenders + contender] =
        ReplayGroup(jobs[job_of[group]], options.contenders[contender],
                    GroupSeed(submitted.id, options.replay), trace.JobsOf(submitted));
    if (options.jobs_done) options.jobs_done(static_cast<std::int64_t>(submitted.job_count));
  });
  std::vector<WorkloadTotals> totals;
  for (const ReplayJob& job : jobs)
    totals.push_back({.workload = job.label,
                      .contenders = std::vector<ClusterTotals>(contenders),
                      .scatter = std::vector<EnergyScatter>(contenders)});
  const auto usual = static_cast<std::size_t>(
      std::ranges::find(options.contenders, "default", &ContenderSpec::name) -
      options.contenders.begin());
  // The order of the groups is fixed here: sums of doubles depend on it.
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) return std::move(results[i]).error();
    totals[job_of[i / contenders]].contenders[i % contenders] += results[i].value();
  }
  for (std::size_t i = 0; usual < contenders && i < results.size(); ++i)
    totals[job_of[i / contenders]].scatter[i % contenders].Add(
        results[i].value().usage.energy, results[i - i % contenders + usual].value().usage.energy);
  return totals;
}

std::vector<std::string> ByDefaultRuntime(std::span<const ReplayJob> jobs) {
  std::vector<const ReplayJob*> sorted;
  for (const ReplayJob& job : jobs) sorted.push_back(&job);
  std::ranges::stable_sort(sorted, {},
                           [](const ReplayJob* job) { return job->DefaultUsage().time; });
  std::vector<std::string> labels;
  for (const ReplayJob* const job : sorted) labels.push_back(job->label);
  return labels;
}

}  // namespace zeus::replay
