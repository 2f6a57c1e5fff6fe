#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/commands.h"
#include "apps/zeus/lists.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/progress_bar.h"
#include "apps/zeus/replay/history_file.h"
#include "apps/zeus/report_outputs.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/replay/history/what_if.h"

namespace zeus::cli {
namespace {

struct HistoryOptions {
  std::filesystem::path file{};
  std::optional<double> eta{};
  std::string gpu{};
  std::string policy{};
  std::int64_t recurrences = 0;
  int seeds = 50;
  OutputFlags outputs{};
};

// Without --policy these are the job's own policy, `default`, and `oracle`.
Result<std::vector<replay::ContenderSpec>> HistoryContenders(const HistoryOptions& options,
                                                             const JobSpec& spec) {
  const std::string text =
      options.policy.empty() ? "default," + spec.policy + ",oracle" : options.policy;
  std::vector<replay::ContenderSpec> contenders;
  for (const std::string_view name : SplitAtCommas(text)) {
    ZEUS_RETURN_IF_ERROR(replay::CheckContender(name));
    if (std::ranges::find(contenders, name, &replay::ContenderSpec::name) == contenders.end())
      contenders.push_back({.name = std::string(name), .beta = spec.beta, .window = spec.window});
  }
  return contenders;
}

Result<int> RunHistory(const HistoryOptions& options) {
  ZEUS_RETURN_IF_ERROR(CheckOutputs(options.outputs));
  ZEUS_TRY(const replay::RunHistory history, ReadHistory(options.file));
  ZEUS_TRY(std::vector<replay::ContenderSpec> contenders, HistoryContenders(options, history.spec));
  const SystemClock clock;
  std::optional<BusyLine> busy(std::in_place, "replaying", clock);
  ZEUS_TRY(const replay::WhatIfAnswer answer,
           replay::Answer(history, {.eta = options.eta,
                                    .gpu_model = options.gpu,
                                    .contenders = std::move(contenders),
                                    .recurrences = options.recurrences,
                                    .seeds = options.seeds}));
  busy.reset();
  ZEUS_RETURN_IF_ERROR(WriteOutputs(options.outputs, ToJson(answer), ToReport(answer)));
  return 0;
}

}  // namespace

void AddReplayHistoryCommand(Verb replay, Action& action) {
  auto options = std::make_shared<HistoryOptions>();
  const Verb verb =
      replay.AddVerb("history", "Replay your own job with another eta, GPU model or policy");
  verb.AddOption("file", options->file, "Output of zeus job export; - reads standard input")
      .Required()
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--eta", options->eta,
                 "1: only energy counts, 0: only time; without it, the job's own")
      .Check(NumberBetween(0, 1));
  verb.AddOption("--gpu", options->gpu,
                 "GPU model to move the job to: estimated from the built-in catalogue")
      .Check(NotEmpty());
  verb.AddOption("--policy", options->policy,
                 "Policies, with commas between them; without it, default, the job's own, oracle")
      .Check(NotEmpty());
  verb.AddOption("--recurrences", options->recurrences,
                 "How often the job recurs; 0: as often as it was recorded")
      .Check(WholeNumberBetween(0, 1'000'000))
      .ShowDefault();
  verb.AddOption("--seeds", options->seeds, "Experiments with each policy")
      .Check(WholeNumberBetween(2, 10'000))
      .ShowDefault();
  AddOutputFlags(verb, options->outputs);
  verb.OnChosen([&action, options] { action = [options] { return RunHistory(*options); }; });
}

}  // namespace zeus::cli
