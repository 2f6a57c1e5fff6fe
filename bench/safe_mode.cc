// Measures how often jobs with a safety bound exceed it, and what the bound costs
// (docs/batch-size-safe.md): groups of 3 to 10 recurrences of the recorded jobs. Needs the recorded
// traces (ZEUS_TRACE_DIR).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/text.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/testing/trace_directory.h"

namespace {

using namespace zeus;
using namespace zeus::replay;

constexpr double kEta = 0.5;
constexpr int kFewest = 3;
constexpr int kMost = 10;

struct Tally {
  int groups = 0;
  int exceeded = 0;       // Groups that cost more than the bound allows at some time.
  int exceeded_kept = 0;  // As above, by the batch sizes alone.
  double cost = 0.0;      // In units of the oracle's cost, as are the next two.
  double usual = 0.0;
  int recurrences = 0;

  Tally& operator+=(const Tally& other) {
    groups += other.groups;
    exceeded += other.exceeded;
    exceeded_kept += other.exceeded_kept;
    cost += other.cost;
    usual += other.usual;
    recurrences += other.recurrences;
    return *this;
  }
};

// A recurrence that the default batch size ended had its own luck; the default would have had the
// same. For others the default's mean counts.
Joules CostOfDefault(const ReplayJob& job, const ReplayedRecurrence& recurrence,
                     const Usage& epoch) {
  const ReplayArm& usual = job.arm(job.default_batch_size);
  const ReplayedRun& last = recurrence.runs.back();
  if (last.batch_size == job.default_batch_size && last.converged) return last.epochs * epoch.cost;
  return usual.ExpectedEpochs(job.max_epochs) * epoch.cost;
}

void ReplayGroupOf(const ReplayJob& job, std::optional<double> safe, double bound,
                   std::uint64_t seed, Tally& tally) {
  JobReplay replay =
      JobReplay::Make(job, {.name = "knowledge_gradient", .safe = safe}, seed).value();
  const ReplayArm& usual = job.arm(job.default_batch_size);
  const int recurrences = kFewest + static_cast<int>(seed % (kMost - kFewest + 1));
  Joules cost{};
  Joules profiling{};  // The cost of profiling the default's power limits.
  Joules by_default{};
  Joules by_default_at_best{};
  bool exceeded = false;
  bool exceeded_kept = false;
  for (int i = 0; i < recurrences; ++i) {
    const ReplayedRecurrence& recurrence = replay.Next();
    cost += recurrence.usage.cost;
    for (const ReplayedRun& run : recurrence.runs)
      if (run.profiled_limits && run.batch_size == job.default_batch_size)
        profiling += usual.profiling_epoch.cost - usual.epoch.cost;
    by_default += CostOfDefault(job, recurrence, usual.full_power_epoch);
    by_default_at_best += CostOfDefault(job, recurrence, usual.epoch);
    exceeded |= cost > (1 + bound) * by_default;
    exceeded_kept |= cost - profiling > (1 + bound) * by_default_at_best;
  }
  tally += {.groups = 1,
            .exceeded = exceeded ? 1 : 0,
            .exceeded_kept = exceeded_kept ? 1 : 0,
            .cost = cost / job.OracleCost(),
            .usual = by_default / job.OracleCost(),
            .recurrences = recurrences};
}

void PrintRow(std::string_view name, const Tally& tally) {
  fmt::print("| {} | {} | {:.2f} % | {:.2f} % | {:.3f} | {:.3f} |\n", name, tally.groups,
             100.0 * tally.exceeded / tally.groups, 100.0 * tally.exceeded_kept / tally.groups,
             tally.cost / tally.recurrences, tally.usual / tally.recurrences);
}

int Run(int groups, bool hold_out) {
  std::vector<ReplayJob> jobs;
  for (const char* const gpu : {hold_out ? "rtx6000" : "v100", hold_out ? "p100" : "a40"}) {
    auto read = ReadReplayJobs(TraceDirectory(), gpu, kEta);
    if (!read.ok()) {
      fmt::print(stderr, "safe-mode: {}; ZEUS_TRACE_DIR names the traces\n", read.error().message);
      return EXIT_FAILURE;
    }
    for (ReplayJob& job : read.value()) jobs.push_back(std::move(job));
  }
  const int each = std::max(1, groups / static_cast<int>(jobs.size()));
  for (const double bound : {0.02, 0.05, 0.10}) {
    fmt::print(
        "Bound {:g} %. Exceeded: groups that cost more at some time than the bound above the\n"
        "default without Zeus (greatest power limit). By batch sizes: above the default at its "
        "best\n"
        "limit, without the profiling of its limits, which is what the policy promises.\n\n"
        "| job | groups | exceeded | by batch sizes | cost of oracle's | default's of oracle's |\n"
        "|---|---|---|---|---|---|\n",
        100 * bound);
    Tally safe_sum;
    Tally free_sum;
    for (const ReplayJob& job : jobs) {
      Tally tally;
      for (int seed = 0; seed < each; ++seed)
        ReplayGroupOf(job, bound, bound, static_cast<std::uint64_t>(seed), tally);
      for (int seed = 0; seed < each; ++seed)
        ReplayGroupOf(job, std::nullopt, bound, static_cast<std::uint64_t>(seed), free_sum);
      PrintRow(job.name(), tally);
      safe_sum += tally;
    }
    PrintRow("all, with the bound", safe_sum);
    PrintRow("all, without", free_sum);
    fmt::print("\n");
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (!std::filesystem::exists(TraceDirectory())) {
    fmt::print("safe-mode: skipped, no traces in {} (set ZEUS_TRACE_DIR)\n",
               TraceDirectory().string());
    return EXIT_SUCCESS;
  }
  const bool hold_out = argc > 2 && std::string_view(argv[2]) == "hold-out";
  const auto groups = argc > 1 ? ParseInteger(argv[1]) : Result<std::int64_t>(10'000);
  if (!groups.ok() || groups.value() < 12 || groups.value() > 10'000'000 ||
      (argc > 2 && !hold_out)) {
    fmt::print(stderr, "usage: safe-mode [GROUPS, from 12] [hold-out]\n");
    return EXIT_FAILURE;
  }
  return Run(static_cast<int>(groups.value()), hold_out);
}
