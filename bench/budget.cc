// Compares ways to share out a power budget on the recorded curves of the Zeus paper, and measures
// how long the solver takes: tables for docs/budget.md. Slowdowns are exact; only the last tables
// have times, which are CPU times because others may use the machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bench/processor_cost.h"
#include "zeus/base/csv.h"
#include "zeus/base/file.h"
#include "zeus/base/random.h"
#include "zeus/base/testing/places.h"
#include "zeus/base/text.h"
#include "zeus/budget/testing/cluster_simulation.h"
#include "zeus/optimizer/budget/rivals.h"
#include "zeus/optimizer/budget/solver.h"

namespace zeus::water_filling {
namespace {

using bench::PeakBytes;
using bench::ProcessorSeconds;

constexpr std::size_t kJobs = 200;
constexpr int kSeeds = 10;
constexpr std::array kShares{0.9, 0.8, 0.75, 0.7, 0.6, 0.5};

// --- recorded curves ---

using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;

Status ReadModel(const std::filesystem::path& folder, const std::string& model,
                 std::map<Key, std::vector<CurveSample>>& samples) {
  ZEUS_TRY(const std::string text, ReadSmallFile(folder / ("summary_power_" + model + ".csv")));
  CsvText csv(text);
  ZEUS_TRY([[maybe_unused]] const bool header, csv.Next());
  while (true) {
    ZEUS_TRY(const bool found, csv.Next());
    if (!found) return Ok();
    const auto& fields = csv.fields();
    if (fields.size() < 7) return InvalidArgument(fmt::format("{}: line {}", model, csv.line()));
    ZEUS_TRY(const double limit, ParseDouble(fields[4]));
    ZEUS_TRY(const double time, ParseDouble(fields[5]));
    ZEUS_TRY(const double draw, ParseDouble(fields[6]));
    const Key key{model, fields[0], fields[1], fields[2], fields[3]};
    samples[key].push_back({.limit = Watts(limit),
                            .time = Seconds(time),
                            .draw = Watts(draw),
                            .draw_sigma = Watts(0)});
  }
}

// A limit is never taken to be faster than a higher one: of two that contradict each other the
// slower one counts, and likewise the higher draw. The solver knows these curves exactly.
void MakeMonotone(std::vector<CurveSample>& samples) {
  std::ranges::sort(samples, {}, &CurveSample::limit);
  for (std::size_t i = samples.size() - 1; i > 0; --i)
    samples[i - 1].time = std::max(samples[i - 1].time, samples[i].time);
  for (std::size_t i = 1; i < samples.size(); ++i)
    samples[i].draw = std::max(samples[i].draw, samples[i - 1].draw);
}

// Reads all curves with three limits at least.
Result<std::vector<SharedCurve>> ReadCurves() {
  const std::filesystem::path folder = testing::RecordedData("ZEUS_TRACE_DIR", "nsdi23");
  std::map<Key, std::vector<CurveSample>> samples;
  for (const char* const model : {"a40", "p100", "rtx6000", "v100"})
    ZEUS_RETURN_IF_ERROR(ReadModel(folder, model, samples));
  std::vector<SharedCurve> curves;
  for (auto& [key, of_job] : samples) {
    if (of_job.size() < 3) continue;
    MakeMonotone(of_job);
    ZEUS_TRY(PowerCurve curve, PowerCurve::FromSamples(of_job));
    curves.push_back(std::make_shared<const PowerCurve>(std::move(curve)));
  }
  return curves;
}

// --- the comparison ---

Problem RandomJobs(const std::vector<SharedCurve>& curves, std::uint64_t seed, Resource resource) {
  Random random(seed);
  Problem problem{.domains = {{.name = "site"}}, .resource = resource};
  for (std::size_t j = 0; j < kJobs; ++j)
    problem.jobs.push_back({.name = fmt::format("job-{}", j),
                            .curve = curves[random.Below(curves.size())],
                            .placements = {{.domain = 0, .gpus = 1}}});
  return problem;
}

// The same share of every highest limit, but only limits at which the curve was measured, as sites
// set them: 25 W apart. The highest that fit.
std::vector<Watts> UniformInMeasuredSteps(const Problem& problem) {
  std::vector<Watts> limits;
  for (double share = 1; share > 0; share -= 0.0005) {
    limits.clear();
    Watts taken{};
    for (const Job& job : problem.jobs) {
      Watts limit = job.curve->lowest();
      for (const CurvePoint& point : job.curve->points()) {
        if (point.limit <= share * job.curve->highest() + Watts(1e-9)) limit = point.limit;
      }
      limits.push_back(limit);
      taken += TakenAt(job, limit, problem.resource);
    }
    if (taken <= problem.domains[0].watts) break;
  }
  return limits;
}

using Method = std::function<std::vector<Watts>(const Problem&)>;
struct NamedMethod {
  std::string name;
  Method choose;
};

std::vector<Watts> Solved(Problem problem, Objective objective) {
  problem.objective = objective;
  std::vector<Watts> limits;
  const Allocation allocation = Solve(problem).value();
  for (const JobGrant& grant : allocation.jobs) limits.push_back(grant.limit);
  return limits;
}

std::vector<NamedMethod> Methods() {
  std::vector<NamedMethod> methods{{"uniform, measured steps", UniformInMeasuredSteps}};
  for (const Rival rival : kRivals)
    methods.push_back({std::string(ToText(rival)), [rival](const Problem& problem) {
                         return RivalLimits(problem, rival).value();
                       }});
  methods.push_back(
      {"ours, worst", [](const Problem& problem) { return Solved(problem, Objective::kWorst); }});
  methods.push_back(
      {"ours, mean", [](const Problem& problem) { return Solved(problem, Objective::kMean); }});
  return methods;
}

// Watts that the jobs take without a cap.
Watts Uncapped(const Problem& problem) {
  Watts taken{};
  for (const Job& job : problem.jobs) taken += TakenAt(job, job.curve->highest(), problem.resource);
  return taken;
}

struct Means {
  double mean = 0;
  double worst = 0;
  double throughput = 0;
  double energy = 0;
  bool feasible = true;
};

Means Compare(const std::vector<SharedCurve>& curves, const Method& choose, Resource resource,
              double share) {
  Means means;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Problem problem = RandomJobs(curves, static_cast<std::uint64_t>(seed), resource);
    problem.domains[0].watts = share * Uncapped(problem);
    means.feasible = means.feasible && !Solve(problem).value().shortfall;
    const Outcome outcome = OutcomeOf(problem, choose(problem));
    means.mean += 100 * (outcome.mean_slowdown - 1) / kSeeds;
    means.worst += 100 * (outcome.worst_slowdown - 1) / kSeeds;
    means.throughput += 100 * (outcome.throughput - 1) / kSeeds;
    means.energy += 100 * (outcome.energy - 1) / kSeeds;
  }
  return means;
}

void PrintComparison(const std::vector<SharedCurve>& curves, Resource resource) {
  fmt::print("\n{}: mean / worst slowdown in per cent at this share of them\n{:<26}",
             resource == Resource::kLimits ? "summed limits" : "drawn power", "");
  for (const double share : kShares) fmt::print("{:>14}", share);
  for (const NamedMethod& method : Methods()) {
    fmt::print("\n{:<26}", method.name);
    for (const double share : kShares) {
      const Means means = Compare(curves, method.choose, resource, share);
      fmt::print("{:>14}", means.feasible ? fmt::format("{:.2f} / {:.1f}", means.mean, means.worst)
                                          : "infeasible");
    }
  }
  fmt::print("\n");
}

void PrintEnergy(const std::vector<SharedCurve>& curves) {
  fmt::print(
      "\nat 0.75: change of throughput and of the energy of the same work in per cent\n"
      "{:<26}{:>22}{:>22}\n",
      "", "summed limits", "drawn power");
  for (const NamedMethod& method : Methods()) {
    const Means limits = Compare(curves, method.choose, Resource::kLimits, 0.75);
    const Means drawn = Compare(curves, method.choose, Resource::kDrawn, 0.75);
    fmt::print("{:<26}{:>22}{:>22}\n", method.name,
               fmt::format("{:+.2f} / {:+.1f}", limits.throughput, limits.energy),
               fmt::format("{:+.2f} / {:+.1f}", drawn.throughput, drawn.energy));
  }
}

void PrintGaps(const std::vector<SharedCurve>& curves) {
  double highest = 0;
  for (const Resource resource : {Resource::kLimits, Resource::kDrawn}) {
    for (const double share : kShares) {
      for (int seed = 1; seed <= kSeeds; ++seed) {
        Problem problem = RandomJobs(curves, static_cast<std::uint64_t>(seed), resource);
        problem.domains[0].watts = share * Uncapped(problem);
        highest = std::max(highest, Solve(problem).value().gap_points);
      }
    }
  }
  fmt::print("\nlargest distance to the bound of any answer above: {:.4f} points\n", highest);
}

// --- speed ---

// A convex curve of eight stretches.
SharedCurve MadeCurve(Random& random) {
  const double steepness = random.Uniform(0.2, 1.5);
  std::vector<CurveSample> samples;
  for (int i = 0; i <= 8; ++i) {
    const double limit = 100 + 25 * i;
    samples.push_back({.limit = Watts(limit),
                       .time = Seconds(std::pow(300 / limit, steepness)),
                       .draw = Watts(0.9 * limit)});
  }
  return std::make_shared<const PowerCurve>(PowerCurve::FromSamples(samples).value());
}

// Racks of 80 jobs in a site that has 70 % of what they could take, and racks that have from 60 to
// 90 %. Every tenth job lies in two racks where `across`.
Problem MadeCluster(std::size_t jobs, bool across) {
  Random random(1);
  const std::size_t racks = (jobs + 79) / 80;
  Problem problem{
      .domains = {{.name = "site", .watts = Watts(0.7 * 300 * static_cast<double>(jobs))}}};
  for (std::size_t rack = 0; rack < racks; ++rack)
    problem.domains.push_back({.name = fmt::format("rack-{}", rack),
                               .parent = 0,
                               .watts = Watts(random.Uniform(0.6, 0.9) * 300 * 80)});
  for (std::size_t j = 0; j < jobs; ++j) {
    Job job{.name = fmt::format("job-{}", j), .curve = MadeCurve(random)};
    if (across && j % 10 == 0)
      job.placements = {{.domain = 1 + j % racks, .gpus = 1},
                        {.domain = 1 + (j + 1) % racks, .gpus = 1}};
    else
      job.placements = {{.domain = 1 + j % racks, .gpus = 1}};
    problem.jobs.push_back(std::move(job));
  }
  return problem;
}

void PrintSpeed() {
  fmt::print("\n{:<34}{:>14}{:>12}{:>14}\n", "one answer, CPU time", "best of 5", "bytes/GPU",
             "gap, points");
  struct Case {
    const char* name;
    std::size_t jobs;
    bool across;
    Objective objective;
  };
  for (const Case& it : {Case{"10,000 jobs, mean", 10'000, false, Objective::kMean},
                         Case{"10,000 jobs, worst", 10'000, false, Objective::kWorst},
                         Case{"10,000 jobs, cost", 10'000, false, Objective::kCost},
                         Case{"10,000 jobs, 1,000 across racks", 10'000, true, Objective::kMean},
                         Case{"100,000 jobs, mean", 100'000, false, Objective::kMean}}) {
    Problem problem = MadeCluster(it.jobs, it.across);
    problem.objective = it.objective;
    const double before = PeakBytes();
    double least = INFINITY;
    double gap = 0;
    for (int run = 0; run < 5; ++run) {
      const double start = ProcessorSeconds();
      gap = Solve(problem).value().gap_points;
      least = std::min(least, ProcessorSeconds() - start);
    }
    const double bytes = (PeakBytes() - before) / static_cast<double>(it.jobs);
    fmt::print("{:<34}{:>11.1f} ms{:>12}{:>14.4f}\n", it.name, 1e3 * least,
               bytes > 0 ? fmt::format("{:.0f}", bytes) : "reused", gap);
  }
}

// Nodes report every two seconds; a lower budget reaches them with the answers.
void PrintFall() {
  budget::ClusterSimulation simulation(
      {.seed = 1, .racks = 8, .nodes = 64, .gpus = 8, .duration = Seconds(600)});
  const budget::ClusterSimulation::Outcome outcome = simulation.Run();
  fmt::print(
      "\n512 simulated GPUs on 64 nodes, virtual time: {} lower budgets, the slowest held "
      "after {:.2f} s; {} violations\n",
      outcome.budget_falls, outcome.slowest_fall.count(), outcome.violations.size());
}

int Main() {
  const auto curves = ReadCurves();
  if (curves.ok()) {
    fmt::print("{} recorded curves, {} jobs drawn from them, mean of {} draws\n",
               curves.value().size(), kJobs, kSeeds);
    for (const Resource resource : {Resource::kLimits, Resource::kDrawn})
      PrintComparison(curves.value(), resource);
    PrintEnergy(curves.value());
    PrintGaps(curves.value());
  } else {
    fmt::print("no comparison on recorded curves: {} (ZEUS_TRACE_DIR names their folder)\n",
               curves.error().message);
  }
  PrintSpeed();
  PrintFall();
  return 0;
}

}  // namespace
}  // namespace zeus::water_filling

int main() { return zeus::water_filling::Main(); }
