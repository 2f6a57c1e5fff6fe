#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/zeus/commands.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/progress_bar.h"
#include "apps/zeus/report_outputs.h"
#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/base/text.h"
#include "zeus/replay/history/run_history.h"
#include "zeus/replay/history/what_if.h"
#include "zeus/replay/input/text_source.h"
#include "zeus/wire/answers.h"

namespace zeus::cli {
namespace {

constexpr const char* kSchema = "zeus.job_export/1";

Status AddRecord(const Json& line, bool first, replay::HistoryBuilder& history) {
  ZEUS_TRY(const std::string record, GetField<std::string>(line, "record"));
  if (first != (record == "job"))
    return Error{ErrorCode::kInvalidArgument,
                 first ? "the first record is not the job: give what zeus job export writes"
                       : "a second job: give one job at a time"};
  if (record == "job") {
    ZEUS_TRY(const std::string schema, GetField<std::string>(line, "schema"));
    if (schema != kSchema)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("schema {} is not {}", Quote(schema), kSchema)};
    ZEUS_TRY(Job job, wire::JobFromJson(line));
    history.SetJob(std::move(job.spec));
  } else if (record == "trial") {
    ZEUS_TRY(Trial trial, wire::TrialFromJson(line));
    return history.Add(std::move(trial));
  } else if (record == "event") {
    ZEUS_TRY(JobEvent event, wire::JobEventFromJson(line));
    return history.Add(std::move(event));
  }
  return Ok();  // Records of newer versions are ignored.
}

Status AddLine(std::string_view line, bool first, replay::HistoryBuilder& history) {
  ZEUS_TRY(const Json json, ParseJson(line));
  return AddRecord(json, first, history);
}

// Reads line by line: an export may be large, and a wrong file must not fill the memory.
Result<replay::RunHistory> ParseHistory(replay::TextSource source) {
  replay::HistoryBuilder history;
  std::int64_t number = 0;
  bool first = true;
  while (true) {
    ZEUS_TRY(std::string_view text, source.NextLines());
    if (text.empty()) break;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = Trim(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      if (line.empty()) continue;
      Status added = AddLine(line, first, history);
      if (!added.ok())
        return std::move(added).error().While(fmt::format("{}: line {}", source.name(), number));
      first = false;
    }
  }
  if (first)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: empty: give what zeus job export writes", source.name())};
  auto finished = std::move(history).Finish();
  if (!finished.ok()) return std::move(finished).error().While(source.name());
  return finished;
}

// Reads the output of `zeus job export` (docs/formats.md); "-" is standard input. kInvalidArgument
// names the line that is wrong.
Result<replay::RunHistory> ReadHistory(const std::filesystem::path& path) {
  ZEUS_TRY(auto bytes, replay::OpenFile(path == "-" ? "/dev/stdin" : path));
  return ParseHistory(replay::TextSource(Printable(path.string()), std::move(bytes)));
}

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
