// Replays the batch size policies on the recorded jobs of the Zeus paper and compares them with the
// reference. Prints the table of docs/batch-size.md. Needs the traces (ZEUS_TRACE_DIR).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/statistics.h"
#include "zeus/base/text.h"
#include "zeus/replay/job_comparison.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/testing/trace_directory.h"

namespace {

using namespace zeus;
using namespace zeus::replay;

struct Speed {
  Seconds time{};
  std::int64_t recurrences = 0;
};

std::vector<ReplaySummary> Timed(const ReplayJob& job, const char* policy, int seeds,
                                 Speed& speed) {
  const SystemClock clock;
  const TimePoint begin = clock.Now();
  auto replays = ReplaySeeds(job, {.name = policy}, seeds);
  speed.time += clock.Now() - begin;
  speed.recurrences += std::int64_t{seeds} * job.recurrences();
  return std::move(replays).value();
}

void PrintSpeed(const char* policy, const Speed& speed) {
  fmt::print("{}: {:.0f} recurrences/s\n", policy,
             static_cast<double>(speed.recurrences) / speed.time.count());
}

int Run(int seeds) {
  fmt::print(
      "{} seeds; energy (ETA), time (TTA) and cost C of the last five recurrences, cumulative\n"
      "regret R in units of the oracle's cost; the reference's in parentheses.\n\n"
      "| job | zeus ETA | zeus TTA | zeus C | zeus R50 | zeus R | knowledge_gradient C | "
      "knowledge_gradient R | R ratio |\n|---|---|---|---|---|---|---|---|---|\n",
      seeds);
  Speed zeus_speed, gradient_speed;
  double log_ratios = 0.0;
  double worst = 0.0;
  int jobs_done = 0;
  for (const char* const gpu : {"v100", "a40"}) {
    const auto jobs = ReadReplayJobs(TraceDirectory(), gpu, 0.5);
    if (!jobs.ok()) {
      fmt::print(stderr, "batch-size-policies: {}; ZEUS_TRACE_DIR names the traces\n",
                 jobs.error().message);
      return EXIT_FAILURE;
    }
    for (const ReplayJob& job : jobs.value()) {
      const auto* const reference =
          std::ranges::find(kReferenceFigures, job.name(), &ReferenceFigures::name);
      const auto zeus = Timed(job, "zeus", seeds, zeus_speed);
      const auto gradient = Timed(job, "knowledge_gradient", seeds, gradient_speed);
      const SampleSummary regret = SummarizeFigure(zeus, &ReplaySummary::regret);
      const SampleSummary new_regret = SummarizeFigure(gradient, &ReplaySummary::regret);
      const double ratio = new_regret.mean / regret.mean;
      fmt::print(
          "| {} | {:.3f} ({:.3f}) | {:.3f} ({:.3f}) | {:.3f} ({:.3f}) | {:.2f} ({:.2f}) | "
          "{:.2f} ± {:.2f} ({:.2f} ± {:.2f}) | {:.3f} | {:.2f} ± {:.2f} ({:.2f}) | {:.2f} |\n",
          job.name(), SummarizeFigure(zeus, &ReplaySummary::last_five_energy).mean,
          reference->energy, SummarizeFigure(zeus, &ReplaySummary::last_five_time).mean,
          reference->time, SummarizeFigure(zeus, &ReplaySummary::last_five_cost).mean,
          reference->cost, SummarizeFigure(zeus, &ReplaySummary::regret_of_50).mean,
          reference->regret_of_50, regret.mean, regret.StandardError(), reference->regret,
          reference->regret_error, SummarizeFigure(gradient, &ReplaySummary::last_five_cost).mean,
          new_regret.mean, new_regret.StandardError(), reference->knowledge_gradient_regret, ratio);
      log_ratios += std::log(ratio);
      worst = std::max(worst, ratio);
      ++jobs_done;
    }
  }
  fmt::print("\nR of knowledge_gradient over that of zeus: geometric mean {:.3f}, worst {:.2f}\n",
             std::exp(log_ratios / jobs_done), worst);
  PrintSpeed("zeus", zeus_speed);
  PrintSpeed("knowledge_gradient", gradient_speed);
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (!std::filesystem::exists(TraceDirectory())) {
    fmt::print("batch-size-policies: skipped, no traces in {} (set ZEUS_TRACE_DIR)\n",
               TraceDirectory().string());
    return EXIT_SUCCESS;
  }
  const auto seeds = argc > 1 ? ParseInteger(argv[1]) : Result<std::int64_t>(1000);
  if (!seeds.ok() || seeds.value() < 2 || seeds.value() > 1'000'000) {
    fmt::print(stderr, "usage: batch-size-policies [SEEDS, from 2]\n");
    return EXIT_FAILURE;
  }
  return Run(static_cast<int>(seeds.value()));
}
