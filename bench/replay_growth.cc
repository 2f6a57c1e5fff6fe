// Measures how time and memory of a cluster replay grow with jobs, groups, arms and threads. Prints
// a table and, with a folder as argument, writes figures. Each point runs in a process of its own,
// so that its memory can be measured; times are CPU times, because others may use the machine.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/text.h"
#include "zeus/replay/cluster/cluster_replay.h"
#include "zeus/replay/cluster/generator.h"
#include "zeus/replay/replay_job.h"
#include "zeus/report/report.h"

namespace zeus::replay {
namespace {

const std::vector<std::string> kPolicies{"default", "grid", "zeus", "knowledge_gradient"};

struct Point {
  ClusterSpec cluster{};
  std::vector<std::string> policies{};
  int threads = 1;
  int arms = 0;  // 0: as in the catalogue.
};

struct Cost {
  Seconds processor{};
  Seconds wall{};  // Time of the replay alone.
  double megabytes = 0.0;
};

Seconds ProcessorTime() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return Seconds(static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double PeakMegabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Returns the same job with `arms` batch sizes: its own, and invented ones between and above them.
ReplayJob WithArms(ReplayJob job, int arms) {
  const std::vector<ReplayArm> real = job.arms;
  job.arms.clear();
  for (int i = 0; i < arms; ++i) {
    ReplayArm arm =
        real[static_cast<std::size_t>(i) * real.size() / static_cast<std::size_t>(arms)];
    arm.batch_size = 8 * (i + 1);
    job.arms.push_back(std::move(arm));
  }
  job.default_batch_size = job.arms[job.arms.size() / 2].batch_size;
  return job;
}

Cost Replay(const Point& point) {
  std::vector<ReplayJob> jobs = CatalogueJobs("v100", 0.5).value();
  const std::vector<std::string> order = ByDefaultRuntime(jobs);
  if (point.arms > 0)
    for (ReplayJob& job : jobs) job = WithArms(std::move(job), point.arms);
  const ClusterTrace trace = GenerateCluster(point.cluster, order);
  ClusterReplayOptions options{.threads = point.threads};
  for (const std::string& policy : point.policies) options.contenders.push_back({.name = policy});
  const SystemClock clock;
  const TimePoint begun = clock.Now();
  const Seconds before = ProcessorTime();
  const bool replayed = ReplayCluster(trace, jobs, options).ok();
  if (!replayed) std::abort();
  return {.processor = ProcessorTime() - before,
          .wall = clock.Now() - begun,
          .megabytes = PeakMegabytes()};
}

std::optional<Cost> Measure(const Point& point) {
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    const Cost cost = Replay(point);
    ::_exit(::write(ends[1], &cost, sizeof cost) == sizeof cost ? 0 : 1);
  }
  ::close(ends[1]);
  Cost cost;
  const bool told = ::read(ends[0], &cost, sizeof cost) == sizeof cost;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return told && status == 0 ? std::optional(cost) : std::nullopt;
}

report::Cell Number(double value, int decimals) {
  return {.text = fmt::format("{:.{}f}", value, decimals), .value = value};
}

// One sweep: a table with a row for each point, and a panel with a line for each policy.
struct Growth {
  report::Table table;
  report::Panel seconds;
  report::Panel megabytes;
};

Growth MakeGrowth(const std::string& what, const std::string& unit) {
  const auto panel = [&](std::string title, std::string y) {
    return report::Panel{.title = std::move(title),
                         .x = {.title = unit, .logarithmic = true},
                         .y = {.title = std::move(y), .logarithmic = true}};
  };
  return {.table = {.id = "growth-" + what,
                    .title = "Growth with " + what,
                    .caption = "",
                    .columns = {what, "policy", "CPU (s)", "wall (s)", "jobs per CPU second",
                                "peak memory (MB)"}},
          .seconds = panel("Time against " + what, "processor time (s)"),
          .megabytes = panel("Memory against " + what, "peak memory (MB)")};
}

void AddPoint(Growth& growth, double x, const std::string& name, const Point& point) {
  const auto cost = Measure(point);
  if (!cost) {
    growth.table.rows.push_back({Number(x, 0), {.text = name}, {.text = "failed"}, {}, {}, {}});
    return;
  }
  const double jobs = static_cast<double>(point.cluster.jobs) *
                      static_cast<double>(point.policies.size()) / cost->processor.count();
  growth.table.rows.push_back({Number(x, 0),
                               {.text = name},
                               Number(cost->processor.count(), 3),
                               Number(cost->wall.count(), 3),
                               Number(jobs, 0),
                               Number(cost->megabytes, 0)});
  const auto add = [&](report::Panel& panel, double y) {
    if (panel.series.empty() || panel.series.back().name != name)
      panel.series.push_back({.name = name, .role = name});
    panel.series.back().x.push_back(x);
    panel.series.back().y.push_back(y);
  };
  add(growth.seconds, cost->processor.count());
  add(growth.megabytes, cost->megabytes);
}

Growth WithJobs(std::int64_t most) {
  Growth growth = MakeGrowth("jobs", "jobs, 200 in a group on average");
  for (const std::string& policy : kPolicies)
    for (std::int64_t jobs = 1000; jobs <= most; jobs *= 10)
      AddPoint(growth, static_cast<double>(jobs), policy,
               {.cluster = {.jobs = jobs, .groups = jobs / 200}, .policies = {policy}});
  return growth;
}

Growth WithGroups(std::int64_t most) {
  Growth growth = MakeGrowth("groups", fmt::format("groups of {} jobs", most / 10));
  for (const std::string& policy : kPolicies)
    for (std::int64_t groups = 1; groups <= most / 10; groups *= 10)
      AddPoint(growth, static_cast<double>(groups), policy,
               {.cluster = {.jobs = most / 10, .groups = groups}, .policies = {policy}});
  return growth;
}

Growth WithBatchSizes(std::int64_t most) {
  Growth growth = MakeGrowth("arms", "batch sizes of a job");
  for (const std::string& policy : kPolicies)
    for (const int arms : {3, 5, 10, 20, 30})
      AddPoint(growth, arms, policy,
               {.cluster = {.jobs = most / 100, .groups = std::max<std::int64_t>(1, most / 20000)},
                .policies = {policy},
                .arms = arms});
  return growth;
}

Growth WithThreads(std::int64_t most) {
  Growth growth = MakeGrowth("threads", "threads");
  for (const int threads : {1, 2, 4, 8})
    AddPoint(growth, threads, "all four",
             {.cluster = {.jobs = most / 10, .groups = std::max<std::int64_t>(1, most / 2000)},
              .policies = kPolicies,
              .threads = threads});
  return growth;
}

int Main(int argc, char** argv) {
  constexpr std::int64_t kMostJobs = 10'000'000;
  report::Report report{.title = "What a replay of a cluster costs",
                        .subtitle = "Time and memory against jobs, groups, arms and threads"};
  report::Figure figure{.id = "replay-growth",
                        .title = "What a replay of a cluster costs",
                        .caption =
                            "Time and memory grow in proportion to the jobs; groups hardly "
                            "matter; arms do for knowledge_gradient."};
  report::Section section{.title = "Growth"};
  for (const auto sweep : {WithJobs, WithGroups, WithBatchSizes, WithThreads}) {
    Growth growth = sweep(kMostJobs);
    section.tables.push_back(std::move(growth.table));
    if (sweep == WithThreads) continue;  // The table is enough for threads.
    figure.panels.push_back(std::move(growth.seconds));
    if (sweep == WithJobs) figure.panels.push_back(std::move(growth.megabytes));
  }
  section.figures.push_back(std::move(figure));
  report.sections.push_back(std::move(section));
  fmt::print("{}", report::ToText(report, 100));
  if (argc < 2) return 0;
  const auto left_out = report::WriteFiles(report, argv[1]);
  if (!left_out.ok()) fmt::print(stderr, "{}\n", left_out.error().message);
  return left_out.ok() ? 0 : 1;
}

}  // namespace
}  // namespace zeus::replay

int main(int argc, char** argv) { return zeus::replay::Main(argc, argv); }
