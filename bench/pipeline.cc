// Measures the cost of computing the frontier of a pipeline: on the shared instances, against their
// targets and their known frontiers, and its growth with the number of computations, as a table
// and, with a folder as argument, as a figure. Each point runs in a process of its own, so that its
// memory can be measured; times are CPU times, because others may use the machine.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/processor_cost.h"
#include "zeus/base/file.h"
#include "zeus/optimizer/pipeline/deadline_solver.h"
#include "zeus/optimizer/pipeline/frontier_solver.h"
#include "zeus/optimizer/pipeline/periodic_frontier.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/testing/known_frontier.h"
#include "zeus/optimizer/pipeline/testing/random_problem.h"
#include "zeus/report/report.h"

namespace zeus::pipeline {
namespace {

using bench::ProcessorSeconds;

struct Cost {
  double seconds = 0;  // CPU time.
  double megabytes = 0;
  double points = 0;
  double error = std::nan("");  // The largest relative difference from the known frontier.
};

double PeakMegabytes() { return bench::PeakBytes() / (1024 * 1024); }

// Runs `work` in a child process; nullopt when it fails.
std::optional<Cost> InChild(const std::function<std::optional<Cost>()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    const std::optional<Cost> cost = work();
    ::_exit(cost && ::write(ends[1], &*cost, sizeof *cost) == sizeof *cost ? 0 : 1);
  }
  ::close(ends[1]);
  Cost cost;
  const bool told = ::read(ends[0], &cost, sizeof cost) == sizeof cost;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return told && status == 0 ? std::optional(cost) : std::nullopt;
}

double LargestError(const Problem& problem, const CostTable& costs, const Frontier& frontier,
                    const std::vector<KnownPoint>& known) {
  const Watts blocking = problem.blocking_power * problem.stages;
  double worst = known.empty() ? std::nan("") : 0;
  for (const KnownPoint& point : known) {
    const Seconds time = costs.tick * static_cast<double>(point.ticks);
    const Joules ours = frontier.EnergyAt(point.ticks) - blocking * time;
    worst = std::max(worst, std::abs(ours / point.effective_energy - 1));
  }
  return worst;
}

// Solves the whole frontier. Quick instances are solved several times and the best time counts.
std::optional<Cost> SolveWhole(const Problem& problem, CostKind kind,
                               const std::vector<KnownPoint>& known) {
  const auto costs = MakeCosts(problem, kind);
  if (!costs.ok()) return std::nullopt;
  Cost cost{.seconds = INFINITY};
  const int runs = problem.graph.size() > 4096 ? 1 : 5;
  for (int run = 0; run < runs; ++run) {
    const double before = ProcessorSeconds();
    const auto frontier = SolveFrontier(problem, costs.value());
    if (!frontier.ok()) return std::nullopt;
    cost.seconds = std::min(cost.seconds, ProcessorSeconds() - before);
    cost.points = static_cast<double>(frontier.value().points().size());
    cost.error = LargestError(problem, costs.value(), frontier.value(), known);
  }
  cost.megabytes = PeakMegabytes();
  return cost;
}

// Solves one deadline: the baseline's time multiplied by 1 + `slowdown`.
std::optional<Cost> SolveOne(const Problem& problem, CostKind kind, double slowdown) {
  const auto costs = MakeCosts(problem, kind);
  if (!costs.ok()) return std::nullopt;
  const Seconds deadline =
      Evaluate(problem, HighestClockChoice(problem)).time * (1 + slowdown) + costs.value().tick;
  const double before = ProcessorSeconds();
  const Ticks ticks =
      std::max(WholeTicks(deadline, costs.value().tick), FastestTicks(problem, costs.value()));
  if (!SolveDeadline(problem, costs.value(), ticks).ok()) return std::nullopt;
  return Cost{.seconds = ProcessorSeconds() - before, .megabytes = PeakMegabytes(), .points = 1};
}

// Computes the points of the frontier from those with fewer microbatches.
std::optional<Cost> SolveFromSmaller(const Problem& problem, CostKind kind,
                                     const std::vector<KnownPoint>& known) {
  const auto costs = MakeCosts(problem, kind);
  if (!costs.ok()) return std::nullopt;
  const double before = ProcessorSeconds();
  const auto resizable = Resizable(problem);
  if (!resizable) return std::nullopt;
  auto points =
      ExtrapolateFrontier(*resizable, costs.value(), problem.stages, problem.microbatches);
  if (!points.ok() || !points.value()) return std::nullopt;
  Cost cost{.seconds = ProcessorSeconds() - before, .megabytes = PeakMegabytes()};
  const Frontier frontier({.tick = costs.value().tick, .points = *std::move(points).value()});
  cost.points = static_cast<double>(frontier.points().size());
  cost.error = LargestError(problem, costs.value(), frontier, known);
  return cost;
}

report::Cell Number(double value, int decimals) {
  if (std::isnan(value)) return {.text = "-"};
  return {.text = fmt::format("{:.{}f}", value, decimals), .value = value};
}

enum class Task { kFrontier, kFromSmaller, kDeadline };

struct Target {
  std::string instance{};
  CostKind kind = CostKind::kExponential;
  double seconds = 0;
  Task task = Task::kFrontier;
  double slowdown = 0;  // How much longer than the baseline the deadline is.
};

const std::vector<Target> kTargets{
    {"sosp24_gpt3-175b_a100_sxm_8x12", CostKind::kExponential, 0.010},
    {"gpt3_a100_8x32", CostKind::kExponential, 0.040},
    {"gpt3_a100_8x128", CostKind::kExponential, 0.3},
    {"gpt3_a100_16x64", CostKind::kExponential, 0.4},
    {"gpt3_a100_32x512", CostKind::kExponential, 10},
    {"gpt3_a100_32x512", CostKind::kExponential, 10, Task::kFromSmaller},
    {"gpt3_a100_32x512", CostKind::kHull, 10},
    {"gpt3_a100_32x512", CostKind::kHull, 10, Task::kFromSmaller},
    {"gpt3_a100_32x512", CostKind::kHull, 1, Task::kDeadline, 0},
    {"gpt3_a100_32x512", CostKind::kHull, 1, Task::kDeadline, 0.02},
    {"gpt3_a100_32x512", CostKind::kHull, 1, Task::kDeadline, 0.05},
    {"gpt3_a100_32x512", CostKind::kHull, 1, Task::kDeadline, 0.2},
};

std::string MakeName(const Target& target) {
  switch (target.task) {
    case Task::kFrontier:
      return "frontier";
    case Task::kFromSmaller:
      return "from smaller";
    case Task::kDeadline:
      break;
  }
  return fmt::format("deadline +{:g} %", target.slowdown * 100);
}

std::optional<Problem> Load(const std::string& instance) {
  const auto text =
      ReadSmallFile(InstanceDirectory() / "instances" / (instance + ".json"), 1 << 24);
  if (!text.ok()) return std::nullopt;
  auto problem = ParseInstance(text.value());
  if (!problem.ok()) return std::nullopt;
  return std::move(problem).value();
}

std::optional<Cost> Run(const Target& target) {
  const auto problem = Load(target.instance);
  if (!problem) return std::nullopt;
  if (target.task == Task::kDeadline) return SolveOne(*problem, target.kind, target.slowdown);
  const auto known = KnownFrontier(target.instance, target.kind);
  if (target.task == Task::kFrontier) return SolveWhole(*problem, target.kind, known);
  return SolveFromSmaller(*problem, target.kind, known);
}

report::Table Targets() {
  report::Table table{.id = "pipeline-targets",
                      .title = "Shared instances",
                      .caption = "Needs the instances beside the repository.",
                      .columns = {"instance", "cost", "what", "points", "CPU (s)", "target (s)",
                                  "peak memory (MB)", "largest relative error"}};
  if (InstanceNames().empty()) return table;
  for (const Target& target : kTargets) {
    const auto cost = InChild([&] { return Run(target); });
    const Cost shown = cost.value_or(Cost{std::nan(""), std::nan(""), std::nan("")});
    table.rows.push_back(
        {{.text = target.instance},
         {.text = target.kind == CostKind::kHull ? "hull" : "exponential"},
         {.text = MakeName(target)},
         Number(shown.points, 0),
         Number(shown.seconds, 4),
         Number(target.seconds, 3),
         Number(shown.megabytes, 0),
         {.text = std::isnan(shown.error) ? "-" : fmt::format("{:.1e}", shown.error)}});
  }
  return table;
}

struct Growth {
  report::Table table{
      .id = "pipeline-growth",
      .title = "Growth with computations",
      .caption = "1F1B; profiles of the shared instances, made-up ones without them.",
      .columns = {"stages", "microbatches", "computations", "cost", "points", "CPU (s)",
                  "peak memory (MB)"}};
  report::Panel seconds{.title = "Time",
                        .x = {.title = "computations", .logarithmic = true},
                        .y = {.title = "processor time (s)", .logarithmic = true}};
  report::Panel megabytes{.title = "Memory",
                          .x = {.title = "computations", .logarithmic = true},
                          .y = {.title = "peak memory (MB)", .logarithmic = true}};
};

// Makes a pipeline with the profile of the shared instance that has so many stages, or with a
// synthetic one.
Result<Problem> MakeSized(int stages, int microbatches) {
  for (const std::string_view instance : {"4x8", "8x32", "16x64", "32x512"}) {
    if (!instance.starts_with(fmt::format("{}x", stages))) continue;
    const auto problem = Load(fmt::format("gpt3_a100_{}", instance));
    if (!problem) break;
    if (const auto resizable = Resizable(*problem)) return (*resizable)(microbatches);
  }
  ZEUS_TRY(const Schedule schedule,
           MakeSchedule("1f1b", {.stages = stages, .microbatches = microbatches}));
  return MakeProblem(SyntheticProfile(stages, 0.01), schedule);
}

void AddPoint(Growth& growth, CostKind kind, int stages, int microbatches) {
  const std::string name = kind == CostKind::kHull ? "hull" : "exponential";
  const auto cost = InChild([&]() -> std::optional<Cost> {
    const auto problem = MakeSized(stages, microbatches);
    return problem.ok() ? SolveWhole(problem.value(), kind, {}) : std::nullopt;
  });
  const double computations = 2.0 * stages * microbatches;
  fmt::print(stderr, "{} stages, {} microbatches, {}: {:.3f} s\n", stages, microbatches, name,
             // Shows progress, because the large ones take minutes.
             cost ? cost->seconds : std::nan(""));
  const Cost shown = cost.value_or(Cost{std::nan(""), std::nan(""), std::nan("")});
  growth.table.rows.push_back({Number(stages, 0),
                               Number(microbatches, 0),
                               Number(computations, 0),
                               {.text = name},
                               Number(shown.points, 0),
                               Number(shown.seconds, 4),
                               Number(shown.megabytes, 0)});
  if (!cost) return;
  const auto add = [&](report::Panel& panel, double y) {
    if (panel.series.empty() || panel.series.back().name != name)
      panel.series.push_back({.name = name, .role = name});
    panel.series.back().x.push_back(computations);
    panel.series.back().y.push_back(y);
  };
  add(growth.seconds, cost->seconds);
  add(growth.megabytes, cost->megabytes);
}

int Main(int argc, char** argv) {
  report::Report report{.title = "What the frontier of a pipeline costs",
                        .subtitle = "Processor time and memory of one thread"};
  report::Section section{.title = "The exact frontier"};
  section.tables.push_back(Targets());
  fmt::print(stderr, "{}", report::ToText(section.tables.back(), 140));
  Growth growth;
  for (const CostKind kind : {CostKind::kExponential, CostKind::kHull})
    for (const auto& [stages, microbatches] : {std::pair(4, 8),
                                               {4, 16},
                                               {8, 16},
                                               {8, 32},
                                               {8, 64},
                                               {8, 128},
                                               {16, 128},
                                               {16, 256},
                                               {32, 256},
                                               {32, 512}})
      AddPoint(growth, kind, stages, microbatches);
  report::Figure figure{.id = "pipeline-growth",
                        .title = "What the frontier of a pipeline costs",
                        .caption = "The whole frontier, from the least energy to the fastest."};
  figure.panels = {std::move(growth.seconds), std::move(growth.megabytes)};
  section.tables.push_back(std::move(growth.table));
  section.figures.push_back(std::move(figure));
  report.sections.push_back(std::move(section));
  fmt::print("{}", report::ToText(report, 120));
  if (argc < 2) return 0;
  const auto left_out = report::WriteFiles(report, argv[1]);
  if (!left_out.ok()) fmt::print(stderr, "{}\n", left_out.error().message);
  return left_out.ok() ? 0 : 1;
}

}  // namespace
}  // namespace zeus::pipeline

int main(int argc, char** argv) { return zeus::pipeline::Main(argc, argv); }
