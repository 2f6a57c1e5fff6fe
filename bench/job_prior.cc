// Measures what knowledge from other jobs is worth (docs/batch-size-prior.md): jobs of which no
// neighbour is of their kind, clusters of groups that recur seldom or often, and a prior that is
// wrong. Needs the recorded traces (ZEUS_TRACE_DIR).
#include "zeus/optimizer/batch_size/job_prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/text.h"
#include "zeus/replay/cluster/cluster_replay.h"
#include "zeus/replay/cluster/generator.h"
#include "zeus/replay/job_comparison.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/testing/trace_directory.h"

namespace {

using namespace zeus;
using namespace zeus::replay;

constexpr double kEta = 0.5;
constexpr const char* kWithPrior = "knowledge_gradient_prior";
constexpr std::string_view kGpus[] = {"v100", "a40"};
constexpr std::string_view kHoldOut[] = {"rtx6000", "p100"};

struct Setting {
  std::vector<std::vector<ReplayJob>> models{};  // The jobs of each GPU model.
};

// Adds what `knowledge_gradient` found about a job to the book. `like` may differ from the job: its
// results are then told as if they were of that job's kind.
void Learn(PriorBook& book, const ReplayJob& job, const ReplayJob& like, double epochs_factor) {
  constexpr std::uint64_t kSeed = 77;
  const std::size_t kind = book.AddJob(KindOf(like));
  JobReplay replay = JobReplay::Make(job, {.name = "knowledge_gradient"}, kSeed).value();
  for (int i = 0; i < job.recurrences(); ++i) {
    const auto& recurrence = replay.Next();
    for (const ReplayedRun& run : recurrence.runs) {
      const std::size_t arm = run.arm * like.arms.size() / job.arms.size();
      const double epochs = std::ceil(run.epochs * epochs_factor);
      book.Add(kind, {.gpu_model = like.gpu_model,
                      .batch_size = like.arms[arm].batch_size,
                      .converged = run.converged,
                      .epochs = static_cast<int>(epochs),
                      .epoch_cost = run.epoch_cost});
    }
  }
}

double MeanRegret(const ReplayJob& job, const ContenderSpec& spec, int seeds) {
  return SummarizeFigure(ReplaySeeds(job, spec, seeds).value(), &ReplaySummary::regret).mean;
}

// A new job of a workload that none of its neighbours has.
void PrintLeaveOneOut(const Setting& setting, int seeds) {
  fmt::print(
      "Regret when no neighbour is of the job's workload; {} seeds.\n\n"
      "| job | zeus | knowledge_gradient | with the prior | of zeus, without | with |\n"
      "|---|---|---|---|---|---|\n",
      seeds);
  double log_without = 0.0;
  double log_with = 0.0;
  double worst = 0.0;
  int count = 0;
  for (const auto& jobs : setting.models) {
    for (const ReplayJob& job : jobs) {
      auto book = std::make_shared<PriorBook>();
      for (const auto& others : setting.models)
        for (const ReplayJob& other : others)
          if (other.label != job.label) Learn(*book, other, other, 1.0);
      const double zeus = MeanRegret(job, {.name = "zeus"}, seeds);
      const double without = MeanRegret(job, {.name = "knowledge_gradient"}, seeds) / zeus;
      const double with = MeanRegret(job, {.name = kWithPrior, .prior = book}, seeds) / zeus;
      fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", job.name(), zeus,
                 without * zeus, with * zeus, without, with);
      log_without += std::log(without);
      log_with += std::log(with);
      worst = std::max(worst, with);
      ++count;
    }
  }
  fmt::print("\nGeometric means {:.3f} without, {:.3f} with; worst with the prior {:.2f}\n\n",
             std::exp(log_without / count), std::exp(log_with / count), worst);
}

// A prior that takes other workloads, at another scale, for jobs of this kind.
void PrintWrong(const Setting& setting, int seeds) {
  fmt::print(
      "Cost of all recurrences with a wrong prior, in units of the cost without one: the worst of\n"
      "the other workloads, told as if they were of this kind, with their epochs times a "
      "factor.\n\n"
      "| job | 1/8 | 1 | 8 |\n|---|---|---|---|\n");
  double worst = 0.0;
  for (const auto& jobs : setting.models) {
    for (const ReplayJob& job : jobs) {
      const auto cost = [&](const ContenderSpec& spec) {
        double sum = 0.0;
        const auto summaries = ReplaySeeds(job, spec, seeds);
        for (const ReplaySummary& one : summaries.value()) sum += one.usage.cost.value();
        return sum;
      };
      const double without = cost({.name = "knowledge_gradient"});
      fmt::print("| {} |", job.name());
      for (const double factor : {0.125, 1.0, 8.0}) {
        double most = 0.0;
        for (const ReplayJob& other : jobs) {
          if (other.label == job.label) continue;
          auto book = std::make_shared<PriorBook>();
          Learn(*book, other, job, factor);
          most = std::max(most, cost({.name = kWithPrior, .prior = book}) / without);
        }
        worst = std::max(worst, most);
        fmt::print(" {:.3f} |", most);
      }
      fmt::print("\n");
    }
  }
  fmt::print("\nWorst {:.3f}\n\n", worst);
}

// Clusters in which groups learn from the groups before them.
void PrintClusters(const Setting& setting, int clusters, std::int64_t groups) {
  fmt::print(
      "Cost of a cluster of {} groups in units of the oracle's; mean of {} clusters. Worst: the\n"
      "workload with the greatest ratio, over all clusters.\n\n"
      "| GPU | jobs per group | knowledge_gradient | worst | with the prior | worst |\n"
      "|---|---|---|---|---|---|\n",
      groups, clusters);
  for (const auto& jobs : setting.models) {
    for (const std::int64_t per_group : {3, 10, 40}) {
      const std::vector<std::string> names = {"default", "knowledge_gradient", kWithPrior,
                                              "oracle"};
      ClusterReplayOptions options{.threads = 1};
      for (const std::string& name : names) options.contenders.push_back({.name = name});
      std::vector<ClusterTotals> sums(names.size());
      std::map<std::string, std::vector<ClusterTotals>> by_workload;
      for (int seed = 1; seed <= clusters; ++seed) {
        const ClusterTrace trace = GenerateCluster({.jobs = groups * per_group,
                                                    .groups = groups,
                                                    .seed = static_cast<std::uint64_t>(seed)},
                                                   ByDefaultRuntime(jobs));
        const auto totals = ReplayCluster(trace, jobs, options);
        for (const WorkloadTotals& workload : totals.value()) {
          auto& mine = by_workload[workload.workload];
          mine.resize(names.size());
          for (std::size_t i = 0; i < names.size(); ++i) {
            sums[i] += workload.contenders[i];
            mine[i] += workload.contenders[i];
          }
        }
      }
      fmt::print("| {} | {} |", jobs.front().gpu_model, per_group);
      for (const std::size_t i : {1U, 2U}) {
        std::string worst;
        double most = 0.0;
        for (const auto& [name, mine] : by_workload) {
          const double ratio = mine[i].usage.cost / mine[3].usage.cost;
          if (!(ratio > most)) continue;
          most = ratio;
          worst = name;
        }
        fmt::print(" {:.4f} | {} {:.3f} |", sums[i].usage.cost / sums[3].usage.cost, worst, most);
      }
      fmt::print("\n");
    }
  }
  fmt::print("\n");
}

int Run(int seeds, bool hold_out) {
  Setting setting;
  for (const std::string_view gpu : hold_out ? kHoldOut : kGpus) {
    auto jobs = ReadReplayJobs(TraceDirectory(), std::string(gpu), kEta);
    if (!jobs.ok()) {
      fmt::print(stderr, "job-prior: {}; ZEUS_TRACE_DIR names the traces\n", jobs.error().message);
      return EXIT_FAILURE;
    }
    setting.models.push_back(std::move(jobs).value());
  }
  PrintLeaveOneOut(setting, seeds);
  PrintWrong(setting, std::max(2, seeds / 10));
  constexpr std::int64_t kGroups = 600;
  PrintClusters(setting, std::max(1, seeds / 100), kGroups);
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (!std::filesystem::exists(TraceDirectory())) {
    fmt::print("job-prior: skipped, no traces in {} (set ZEUS_TRACE_DIR)\n",
               TraceDirectory().string());
    return EXIT_SUCCESS;
  }
  const bool hold_out = argc > 2 && std::string_view(argv[2]) == "hold-out";
  const auto seeds = argc > 1 ? ParseInteger(argv[1]) : Result<std::int64_t>(1000);
  if (!seeds.ok() || seeds.value() < 2 || seeds.value() > 1'000'000 || (argc > 2 && !hold_out)) {
    fmt::print(stderr, "usage: job-prior [SEEDS, from 2] [hold-out]\n");
    return EXIT_FAILURE;
  }
  return Run(static_cast<int>(seeds.value()), hold_out);
}
