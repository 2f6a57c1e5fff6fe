#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/budget/budget_command.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/replay/replay_flags.h"
#include "apps/zeus/report_outputs.h"
#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/replay/budget/oversubscription.h"
#include "zeus/replay/cluster/cluster_replay.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/cluster/generator.h"

namespace zeus::cli {
namespace {

struct SimulateOptions {
  std::filesystem::path trace{};
  std::string generate = "jobs=6000,groups=200,days=3,median_runtime=3600";
  SourceFlags source{};
  std::string gpu = "v100";
  std::uint64_t gpus = 0;
  std::string more = "0,10,20,30,40,50,60,80,100";
  std::string mode = "limits";
  std::string objective = "mean";
  double accepted = 1.05;
  double period = 300;
  int threads = 1;
  OutputFlags outputs{};
};

// "0,10,30" in per cent.
Result<std::vector<double>> ParseMore(const std::string& text) {
  std::vector<double> more;
  for (const std::string_view part : SplitAtCommas(text)) {
    const auto percent = ParseDouble(part);
    if (!percent.ok() || !(percent.value() >= 0 && percent.value() <= 1000))
      return InvalidArgument(fmt::format(
          "--more {}: it must be numbers from 0 to 1000 with commas between them, as in 0,30,50",
          Quote(part)));
    more.push_back(percent.value() / 100);
  }
  return more;
}

Result<replay::ClusterTrace> OpenTrace(const SimulateOptions& options,
                                       const std::vector<replay::ReplayJob>& jobs,
                                       replay::RowProblems& problems) {
  if (!options.trace.empty()) {
    ZEUS_TRY(replay::ClusterTrace trace, replay::ReadGroupTrace(options.trace, problems));
    if (options.source.strict) ZEUS_RETURN_IF_ERROR(problems.Refuse());
    return trace;
  }
  ZEUS_TRY(const replay::ClusterSpec spec, replay::ParseClusterSpec(options.generate));
  return GenerateCluster(spec, ByDefaultRuntime(jobs));
}

Result<int> RunSimulate(const SimulateOptions& options) {
  ZEUS_TRY(const std::vector<double> more, ParseMore(options.more));
  ZEUS_RETURN_IF_ERROR(CheckOutputs(options.outputs));
  ZEUS_TRY(const sim::GpuModel* const model, sim::FindGpuModel(options.gpu));
  ZEUS_TRY(const LoadedJobs loaded, LoadJobs(options.source, options.gpu, 0.5));
  ZEUS_TRY(std::vector<replay::NamedCurve> curves, replay::CurvesOf(loaded.jobs));
  replay::RowProblems problems;
  ZEUS_TRY(const replay::ClusterTrace trace, OpenTrace(options, loaded.jobs, problems));
  Warn(problems);
  replay::OversubscriptionOptions study_options{
      .gpus = static_cast<std::size_t>(options.gpus),
      .more = more,
      .resource = options.mode == "drawn" ? water_filling::Resource::kDrawn
                                          : water_filling::Resource::kLimits,
      .objective = options.objective == "worst" ? water_filling::Objective::kWorst
                                                : water_filling::Objective::kMean,
      .period = Seconds(options.period),
      .idle = model->idle_power,
      .accepted = options.accepted,
      .threads = options.threads};
  ZEUS_TRY(replay::Oversubscription study,
           replay::StudyOversubscription(trace, std::move(curves), study_options));
  study.source = options.trace.empty() ? "a generated cluster (" + options.generate + ")"
                                       : Printable(options.trace.filename().string());
  study.remarks.push_back(
      fmt::format("Power curves of {} come from {}.", model->name, loaded.source));
  if (!problems.empty())
    study.remarks.push_back(fmt::format("{} rows of the trace were left out, {} were put right.",
                                        problems.left_out(), problems.put_right()));
  Json result = ToJson(study);
  result["problems"] = problems.ToJson();
  ZEUS_RETURN_IF_ERROR(WriteOutputs(options.outputs, result, ToReport(study)));
  return 0;
}

void AddInputs(Verb verb, SimulateOptions& options) {
  verb.AddOption("--trace", options.trace,
                 "A trace of groups: CSV, also packed (xz, gz, zst); see docs/formats.md")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--generate", options.generate, "Without --trace: a made-up cluster")
      .Check(NotEmpty())
      .ShowDefault()
      .TypeName("SPEC");
  AddSourceFlags(verb, options.source);
  verb.AddOption("--gpu", options.gpu, "GPU model that the jobs run on")
      .Check(NotEmpty())
      .ShowDefault()
      .TypeName("MODEL");
  verb.AddOption(
          "--gpus", options.gpus,
          "Number of GPUs; jobs queue where they are too few. Without it as many as jobs ever run "
          "at once")
      .Check(WholeNumberBetween(1, 1'000'000))
      .TypeName("N");
}

}  // namespace

void AddBudgetSimulateCommand(Verb budget, Action& action) {
  auto options = std::make_shared<SimulateOptions>();
  const Verb verb = budget.AddVerb(
      "simulate", "How many more GPUs fit under one budget, and what that costs their jobs");
  AddInputs(verb, *options);
  verb.AddOption("--more", options->more, "Additional GPUs under the same budget, in per cent")
      .ShowDefault()
      .TypeName("NUMBERS");
  verb.AddOption("--mode", options->mode,
                 "limits: the sum of power limits keeps the budget; drawn: the expected draw does")
      .Check(OneOf({"limits", "drawn"}))
      .ShowDefault();
  verb.AddOption("--objective", options->objective,
                 "mean: least mean slowdown; worst: least slowdown of the slowest job")
      .Check(OneOf({"mean", "worst"}))
      .ShowDefault();
  verb.AddOption("--accept", options->accepted, "Mean slowdown up to which GPUs are worth adding")
      .Check(NumberBetween(1, 10))
      .ShowDefault();
  verb.AddOption("--period", options->period, "Seconds between two decisions")
      .Check(NumberBetween(1, 86400))
      .ShowDefault();
  AddThreadsFlag(verb, options->threads);
  AddOutputFlags(verb, options->outputs);
  verb.OnChosen([&action, options] { action = [options] { return RunSimulate(*options); }; });
}

}  // namespace zeus::cli
