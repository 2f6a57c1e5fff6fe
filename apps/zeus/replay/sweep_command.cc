#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/commands.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/progress_bar.h"
#include "apps/zeus/replay/replay_flags.h"
#include "apps/zeus/report_outputs.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/sweep.h"

namespace zeus::cli {
namespace {

constexpr std::uint64_t kMostSweepSeeds = 1'000'000;

struct SweepFlags {
  SourceFlags source{};
  OutputFlags outputs{};
  std::string gpus = "v100";
  std::string workloads = "all";
  std::string policies = "zeus,knowledge_gradient";
  std::string etas = "0.5";
  std::string betas = "2";
  int seeds = 20;
  int threads = 1;
};

// The settings that the flags ask for.
struct SweepPlan {
  std::vector<std::string> gpus{};
  std::vector<std::string> workloads{};
  std::vector<double> etas{};
  // One list of policies for each beta.
  std::vector<std::vector<replay::ContenderSpec>> contenders{};

  std::int64_t comparisons() const {
    return std::ssize(gpus) * std::ssize(workloads) * std::ssize(etas) * std::ssize(contenders);
  }
};

Result<double> ParseEta(std::string_view text) {
  auto eta = ParseDouble(text);
  if (!eta.ok() || !(eta.value() >= 0 && eta.value() <= 1))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("eta is {}: it must be a number from 0 to 1", Quote(text))};
  return eta;
}

template <typename T>
void AddOnce(std::vector<T>& list, T value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(std::move(value));
}

// Removes repetitions: a setting that was given twice would count twice in the means.
Result<SweepPlan> MakeSweepPlan(const SweepFlags& flags) {
  SweepPlan plan;
  for (const std::string_view gpu : SplitAtCommas(flags.gpus)) AddOnce(plan.gpus, LowerCase(gpu));
  if (flags.workloads == "all") {
    for (const replay::WorkloadKey& key : replay::PaperWorkloads())
      plan.workloads.emplace_back(key.label);
  } else {
    for (const std::string_view workload : SplitAtCommas(flags.workloads)) {
      ZEUS_RETURN_IF_ERROR(replay::FindWorkload(workload));
      AddOnce(plan.workloads, std::string(workload));
    }
  }
  for (const std::string_view text : SplitAtCommas(flags.etas)) {
    ZEUS_TRY(const double eta, ParseEta(text));
    AddOnce(plan.etas, eta);
  }
  ZEUS_TRY(const std::vector<std::string> names, ParseContenders(flags.policies));
  std::vector<std::optional<double>> betas;
  for (const std::string_view text : SplitAtCommas(flags.betas)) {
    ZEUS_TRY(const std::optional<double> beta, ParseBeta(text));
    AddOnce(betas, beta);
  }
  for (const std::optional<double>& beta : betas) {
    std::vector<replay::ContenderSpec>& contenders = plan.contenders.emplace_back();
    for (const std::string& name : names) contenders.push_back({.name = name, .beta = beta});
  }
  return plan;
}

// Loads the jobs of each GPU model at each eta.
Result<std::vector<LoadedJobs>> LoadAll(const SweepFlags& flags, const SweepPlan& plan,
                                        replay::RowProblems& problems) {
  std::vector<LoadedJobs> all;
  for (const std::string& gpu : plan.gpus) {
    for (const double eta : plan.etas) {
      ZEUS_TRY(LoadedJobs loaded, LoadJobs(flags.source, gpu, eta, problems));
      all.push_back(std::move(loaded));
    }
  }
  Warn(problems);
  return all;
}

Result<std::vector<replay::SweepRow>> RunSweep(const SweepFlags& flags, const SweepPlan& plan,
                                               const std::vector<LoadedJobs>& all) {
  std::vector<replay::SweepRow> rows;
  ProgressBar progress("comparisons", plan.comparisons());
  for (const LoadedJobs& loaded : all) {
    for (const std::string& workload : plan.workloads) {
      ZEUS_TRY(const replay::ReplayJob* const job, loaded.Find(workload));
      for (const std::vector<replay::ContenderSpec>& contenders : plan.contenders) {
        ZEUS_TRY(const replay::JobComparison comparison, Compare(*job, {.contenders = contenders,
                                                                        .seeds = flags.seeds,
                                                                        .threads = flags.threads}));
        std::vector<replay::SweepRow> more = MakeSweepRows(comparison);
        std::ranges::move(more, std::back_inserter(rows));
        progress.Add(1);
      }
    }
  }
  return rows;
}

std::vector<std::string> Remarks(const SweepPlan& plan, const std::vector<LoadedJobs>& all,
                                 const std::vector<replay::SweepRow>& rows) {
  std::vector<std::string> remarks{fmt::format("Replayed from {}.", all.front().source)};
  for (const LoadedJobs& loaded : all)
    for (const replay::ReplayJob& job : loaded.jobs)
      if (std::ranges::find(plan.workloads, job.label) != plan.workloads.end())
        for (const std::string& remark : job.remarks) AddOnce(remarks, remark);
  for (std::string& remark : UnfinishedRemarks(rows)) remarks.push_back(std::move(remark));
  return remarks;
}

Result<int> Sweep(const SweepFlags& flags) {
  ZEUS_TRY(const SweepPlan plan, MakeSweepPlan(flags));
  ZEUS_RETURN_IF_ERROR(CheckOutputs(flags.outputs));
  replay::RowProblems problems;
  ZEUS_TRY(const std::vector<LoadedJobs> all, LoadAll(flags, plan, problems));
  ZEUS_TRY(const std::vector<replay::SweepRow> rows, RunSweep(flags, plan, all));
  report::Report report = replay::SweepReport(rows, flags.seeds);
  report.remarks = Remarks(plan, all, rows);
  Json json = {{"seeds", flags.seeds}, {"remarks", report.remarks}};
  json.update(replay::SweepJson(rows));
  if (!problems.empty()) json["problems"] = problems.ToJson();
  ZEUS_RETURN_IF_ERROR(WriteOutputs(flags.outputs, json, report));
  return 0;
}

}  // namespace

void AddReplaySweepCommand(Verb replay, Action& action) {
  auto flags = std::make_shared<SweepFlags>();
  const Verb verb = replay.AddVerb(
      "sweep", "Compare policies over GPU models, workloads, eta and beta; lists with commas");
  const auto add = [verb](const char* name, std::string& value, const char* description) {
    verb.AddOption(name, value, description).Check(NotEmpty()).ShowDefault().TypeName("LIST");
  };
  AddSourceFlags(verb, flags->source);
  add("--gpu", flags->gpus, "GPU models");
  add("--workload", flags->workloads, "Workloads, or all");
  add("--policy", flags->policies, "Policies");
  add("--eta", flags->etas, "Each from 0 (time is what counts) to 1 (energy is)");
  add("--beta", flags->betas,
      "Stop a run at this many times the least cost; none: never stop early");
  verb.AddOption("--seeds", flags->seeds, "Replays of each policy, with seeds from 0")
      .Check(WholeNumberBetween(1, kMostSweepSeeds))
      .ShowDefault();
  AddThreadsFlag(verb, flags->threads);
  AddOutputFlags(verb, flags->outputs);
  verb.OnChosen([flags, &action] { action = [flags] { return Sweep(*flags); }; });
}

}  // namespace zeus::cli
