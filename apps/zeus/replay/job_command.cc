#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/zeus/commands.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/progress_bar.h"
#include "apps/zeus/replay/replay_flags.h"
#include "apps/zeus/report_outputs.h"
#include "zeus/base/json.h"
#include "zeus/replay/job_comparison.h"

namespace zeus::cli {
namespace {

constexpr std::uint64_t kMostSeeds = 1'000'000;
constexpr std::uint64_t kMostRecurrences = 1'000'000'000;

struct ReplayJobFlags {
  SourceFlags source{};
  OutputFlags outputs{};
  std::string gpu = "v100";
  std::string workload{};
  std::string policies = "zeus,knowledge_gradient";
  int seeds = 50;
  std::int64_t recurrences = 0;
  double eta = 0.5;
  std::string beta = "2";
  int window = 0;
  std::optional<double> safe{};
  bool histories = false;
  bool without_foresight = false;
  int threads = 1;
};

Result<std::vector<replay::ContenderSpec>> ChooseContenders(const ReplayJobFlags& flags) {
  ZEUS_TRY(const std::vector<std::string> names, ParseContenders(flags.policies));
  ZEUS_TRY(const std::optional<double> beta, ParseBeta(flags.beta));
  std::vector<replay::ContenderSpec> contenders;
  for (const std::string& name : names)
    contenders.push_back({.name = name,
                          .beta = beta,
                          .window = flags.window,
                          .foresees_epoch_costs = !flags.without_foresight,
                          .safe = flags.safe});
  return contenders;
}

Result<int> ReplayJobs(const ReplayJobFlags& flags) {
  ZEUS_TRY(const std::vector<replay::ContenderSpec> contenders, ChooseContenders(flags));
  ZEUS_RETURN_IF_ERROR(CheckOutputs(flags.outputs));
  ZEUS_TRY(const LoadedJobs loaded, LoadJobs(flags.source, flags.gpu, flags.eta));
  ZEUS_TRY(const replay::ReplayJob* const job, loaded.Find(flags.workload));
  Result<replay::JobComparison> comparison = [&] {
    ProgressBar progress("seeds", std::int64_t{flags.seeds} * std::ssize(contenders));
    return replay::Compare(*job, {.contenders = contenders,
                                  .seeds = flags.seeds,
                                  .recurrences = flags.recurrences,
                                  .histories = flags.histories,
                                  .threads = flags.threads,
                                  .seed_done = [&progress] { progress.Add(1); }});
  }();
  if (!comparison.ok()) return std::move(comparison).error();
  Json json = ToJson(comparison.value());
  json["beta"] = contenders.front().beta ? Json(*contenders.front().beta) : Json();
  json["source"] = loaded.source;
  if (!loaded.problems.empty()) json["problems"] = loaded.problems.ToJson();
  report::Report report = MakeReport(comparison.value());
  report.remarks.push_back(fmt::format("Replayed from {}.", loaded.source));
  ZEUS_RETURN_IF_ERROR(WriteOutputs(flags.outputs, json, report));
  return 0;
}

void AddPolicyFlags(Verb verb, ReplayJobFlags& flags) {
  verb.AddOption("--policy", flags.policies,
                 "Policies to compare, separated by commas: default, grid, zeus, "
                 "knowledge_gradient, oracle, zeus_no_early_stop, zeus_no_pruning, zeus_no_jit")
      .ShowDefault()
      .TypeName("NAMES");
  verb.AddOption("--eta", flags.eta, "From 0 (only time counts) to 1 (only energy counts)")
      .Check(NumberBetween(0, 1))
      .ShowDefault();
  verb.AddOption("--beta", flags.beta,
                 "Stop a run at this many times the least cost; none: never stop early")
      .ShowDefault()
      .TypeName("NUMBER|none");
  verb.AddOption("--window", flags.window, "Only this many of the latest results count; 0: all")
      .Check(WholeNumberBetween(0, kMostSeeds))
      .ShowDefault();
  verb.AddOption("--safe", flags.safe,
                 "knowledge_gradient keeps the cost of all recurrences within this share above the "
                 "default's, with 95 % confidence: 0.05")
      .Check(NumberBetween(0, 1000));
  verb.AddFlag("--without-foresight", flags.without_foresight,
               "Policies learn what an epoch costs from the first run with a batch size, as on a "
               "real GPU, instead of knowing it as the reference's simulator does");
}

}  // namespace

void AddReplayJobCommand(Verb replay, Action& action) {
  auto flags = std::make_shared<ReplayJobFlags>();
  const Verb verb = replay.AddVerb("job", "Compare policies on the recurrences of one job");
  AddSourceFlags(verb, flags->source);
  verb.AddOption("--gpu", flags->gpu, "GPU model")
      .Check(NotEmpty())
      .ShowDefault()
      .TypeName("MODEL");
  verb.AddOption("--workload", flags->workload,
                 "deepspeech2, bert_qa, bert_sa, resnet50, shufflenet or neumf")
      .Required()
      .TypeName("NAME");
  AddPolicyFlags(verb, *flags);
  verb.AddOption("--seeds", flags->seeds, "Replays of each policy, with seeds from 0")
      .Check(WholeNumberBetween(1, kMostSeeds))
      .ShowDefault();
  verb.AddOption("--recurrences", flags->recurrences,
                 "Recurrences of the job; default: 2 |B| |P|, as in the paper")
      .Check(WholeNumberBetween(1, kMostRecurrences));
  verb.AddFlag("--histories", flags->histories, "With --json: every run of every seed");
  AddThreadsFlag(verb, flags->threads);
  AddOutputFlags(verb, flags->outputs);
  verb.OnChosen([flags, &action] { action = [flags] { return ReplayJobs(*flags); }; });
}

void AddReplayCommand(Verb app, Action& action) {
  const Verb verb = app.AddVerb(
      "replay", "Compare policies on recorded or simulated jobs, without running anything");
  verb.RequireVerb();
  AddReplayClusterCommand(verb, action);
  AddReplayJobCommand(verb, action);
  AddReplayPaperCommand(verb, action);
  AddReplayHistoryCommand(verb, action);
  AddReplaySweepCommand(verb, action);
}

}  // namespace zeus::cli
