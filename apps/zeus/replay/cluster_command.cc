#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/commands.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/progress_bar.h"
#include "apps/zeus/replay/replay_flags.h"
#include "apps/zeus/report_outputs.h"
#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/base/text.h"
#include "zeus/replay/cluster/cluster_replay.h"
#include "zeus/replay/cluster/cluster_report.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/cluster/generator.h"
#include "zeus/replay/cluster/pai_tables.h"
#include "zeus/replay/input/csv_reader.h"

namespace zeus::cli {
namespace {

// --- the trace of a cluster, from one of three sources ---

// Exactly one of them must be given.
struct ClusterSourceFlags {
  std::filesystem::path groups{};  // A trace of groups.
  std::filesystem::path pai{};     // A folder with the tables of Alibaba's trace.
  std::string generate{};          // Spec of a cluster to generate.
};

struct ClusterSource {
  replay::ClusterTrace trace{};
  std::string title{};                 // "groups.csv.xz", "a generated cluster (jobs=…)"
  std::vector<std::string> remarks{};  // Sentences about jobs that were left out.
};

Result<ClusterSource> Recorded(const std::filesystem::path& path, replay::RowProblems& problems) {
  ZEUS_TRY(replay::ClusterTrace trace, replay::ReadGroupTrace(path, problems));
  return ClusterSource{.trace = std::move(trace), .title = Printable(path.filename().string())};
}

Result<ClusterSource> Tables(const std::filesystem::path& folder,
                             std::span<const std::string> workloads,
                             replay::RowProblems& problems) {
  ZEUS_TRY(replay::PaiTrace pai, replay::ReadPaiTables(folder, workloads, problems));
  ClusterSource source{.trace = std::move(pai.trace),
                       .title = "pai tables in " + Printable(folder.string())};
  source.remarks.push_back(
      fmt::format("{} jobs did not terminate and {} have no group: they are no part of it.",
                  pai.not_terminated, pai.without_group));
  return source;
}

Result<ClusterSource> Generated(const std::string& traits, std::span<const std::string> workloads,
                                std::uint64_t number) {
  ZEUS_TRY(replay::ClusterSpec spec, replay::ParseClusterSpec(traits));
  const std::string title = "a generated cluster (" + ToText(spec) + ")";
  spec.seed += number;
  return ClusterSource{.trace = GenerateCluster(spec, workloads), .title = title};
}

// `workloads` are labels ordered by default runtime, shortest first. `number` counts replays from
// 0: a generated cluster differs for each, a recorded one does not. kInvalidArgument unless exactly
// one source is given.
Result<ClusterSource> OpenClusterSource(const ClusterSourceFlags& flags,
                                        std::span<const std::string> workloads,
                                        std::uint64_t number, replay::RowProblems& problems) {
  const int given =
      int{!flags.groups.empty()} + int{!flags.pai.empty()} + int{!flags.generate.empty()};
  if (given != 1)
    return Error{ErrorCode::kInvalidArgument,
                 "give one of --groups FILE, --pai DIR and --generate SPEC"};
  if (!flags.groups.empty()) return Recorded(flags.groups, problems);
  if (!flags.pai.empty()) return Tables(flags.pai, workloads, problems);
  return Generated(flags.generate, workloads, number);
}

struct ClusterOptions {
  ClusterSourceFlags cluster{};
  SourceFlags source{};
  std::string gpu = "v100";
  std::string policies = "zeus,default,grid,knowledge_gradient";
  double eta = 0.5;
  std::string beta = "2";
  std::uint64_t seeds = 1;
  int threads = 1;
  std::filesystem::path write{};
  OutputFlags outputs{};
  CarbonOptions carbon{};
};

// Adds `default`, with which the others are compared, if it is missing.
Result<std::vector<replay::ContenderSpec>> ClusterContenders(const ClusterOptions& options) {
  ZEUS_TRY(std::vector<std::string> names, ParseContenders(options.policies));
  ZEUS_TRY(const std::optional<double> beta, ParseBeta(options.beta));
  if (std::ranges::find(names, "default") == names.end()) names.emplace_back("default");
  std::vector<replay::ContenderSpec> contenders;
  for (std::string& name : names) contenders.push_back({.name = std::move(name), .beta = beta});
  return contenders;
}

Result<ClusterSource> Open(const ClusterOptions& options,
                           const std::vector<replay::ReplayJob>& jobs, std::uint64_t number,
                           replay::RowProblems& problems) {
  ZEUS_TRY(ClusterSource source,
           OpenClusterSource(options.cluster, ByDefaultRuntime(jobs), number, problems));
  if (options.source.strict) ZEUS_RETURN_IF_ERROR(problems.Refuse());
  return source;
}

Result<std::vector<replay::WorkloadTotals>> ReplayOnce(
    const ClusterOptions& options, const replay::ClusterTrace& trace,
    const std::vector<replay::ReplayJob>& jobs,
    const std::vector<replay::ContenderSpec>& contenders, std::uint64_t number) {
  const auto total = static_cast<std::int64_t>(trace.jobs.size() * contenders.size());
  ProgressBar progress(fmt::format("jobs of replay {} of {}", number + 1, options.seeds), total);
  return ReplayCluster(trace, jobs,
                       {.contenders = contenders,
                        .replay = number,
                        .threads = options.threads,
                        .jobs_done = [&progress](std::int64_t done) { progress.Add(done); }});
}

std::vector<std::string> ClusterRemarks(const ClusterOptions& options, const LoadedJobs& loaded,
                                        const replay::RowProblems& problems) {
  std::vector<std::string> remarks{fmt::format("What a run takes comes from {}.", loaded.source)};
  if (!problems.empty())
    remarks.push_back(fmt::format("{} rows of the input were left out, {} were put right.",
                                  problems.left_out(), problems.put_right()));
  if (options.seeds > 1)
    remarks.push_back(
        fmt::format("Means over {} {}, with the standard deviation of one.", options.seeds,
                    options.cluster.generate.empty() ? "replays" : "generated clusters"));
  for (const replay::ReplayJob& job : loaded.jobs) {
    remarks.insert(remarks.end(), job.remarks.begin(), job.remarks.end());
    if (!job.HasOracle())
      remarks.push_back(
          fmt::format("No batch size of {} always reaches the target: there is no "
                      "oracle to compare with, and no regret.",
                      job.title));
  }
  return remarks;
}

Result<int> Write(const ClusterOptions& options, const std::vector<replay::ReplayJob>& jobs) {
  replay::RowProblems problems;
  ZEUS_TRY(const ClusterSource source, Open(options, jobs, 0, problems));
  Warn(problems);
  ZEUS_RETURN_IF_ERROR(WriteWhole(options.write, [&source](const WritePart& take) {
    return WriteGroupTrace(source.trace, take);
  }));
  for (const std::string& remark : source.remarks)
    PrintErrorText(fmt::format("zeus: {}\n", remark));
  PrintText(
      fmt::format("{}: {}\n", Printable(options.write.string()), ToText(Describe(source.trace))));
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  return 0;
}

Status CheckWrite(const ClusterOptions& options) {
  if (options.write.empty()) return Ok();
  const OutputFlags& others = options.outputs;
  if (others.json || !others.html.empty() || !others.csv.empty() || !others.figures.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "--write replays nothing, so there is nothing for --json, --html, --csv and "
                 "--figures: leave them out"};
  return CheckWritable(options.write);
}

// Replays the first trace again, or a new one each time.
Status ReplayAll(const ClusterOptions& options,
                 const std::vector<replay::ContenderSpec>& contenders, ClusterSource source,
                 replay::ClusterComparison& comparison) {
  for (std::uint64_t number = 0; number < options.seeds; ++number) {
    if (number > 0 && !options.cluster.generate.empty()) {
      replay::RowProblems none;
      ZEUS_TRY(source, Open(options, comparison.jobs, number, none));
    }
    ZEUS_TRY(std::vector<replay::WorkloadTotals> totals,
             ReplayOnce(options, source.trace, comparison.jobs, contenders, number));
    comparison.replays.push_back(std::move(totals));
  }
  return Ok();
}

// Adds emissions and money that each policy saves, at present intensities and prices.
void AddSavedCarbon(const CarbonAccounting& carbon, const Clock& clock,
                    const replay::ClusterComparison& comparison, Json& result,
                    report::Report& report) {
  if (!carbon.wanted()) return;
  for (std::size_t c = 0; c < comparison.contenders.size(); ++c) {
    const std::string& name = comparison.contenders[c];
    const auto saving = ComputeSaving(comparison, c, std::nullopt);
    if (name == "default" || !saving || !(saving->energy > Joules(0))) continue;
    const WallTime now = clock.WallNow();
    const CarbonReport saved =
        carbon.Of(EnergyUse{.pieces = {{.begin = now, .end = now, .energy = saving->energy}},
                            .sigma = saving->energy_sigma});
    AddTo(result["policies"][name]["total"]["saved"], saved);
    for (const std::string& line : ToLines(saved))
      report.findings.push_back(fmt::format("{} saves {}.", name, line));
  }
}

Result<int> RunCluster(const ClusterOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(clock, options.carbon));
  ZEUS_TRY(const std::vector<replay::ContenderSpec> contenders, ClusterContenders(options));
  ZEUS_RETURN_IF_ERROR(CheckOutputs(options.outputs));
  ZEUS_RETURN_IF_ERROR(CheckWrite(options));
  ZEUS_TRY(const LoadedJobs loaded, LoadJobs(options.source, options.gpu, options.eta));
  if (!options.write.empty()) return Write(options, loaded.jobs);
  replay::ClusterComparison comparison{.jobs = loaded.jobs};
  for (const replay::ContenderSpec& contender : contenders)
    comparison.contenders.push_back(contender.name);
  replay::RowProblems problems;
  ZEUS_TRY(ClusterSource source, Open(options, comparison.jobs, 0, problems));
  Warn(problems);
  problems.Add(loaded.problems);
  comparison.source = source.title;
  comparison.statistics = Describe(source.trace);
  comparison.remarks = ClusterRemarks(options, loaded, problems);
  comparison.remarks.insert(comparison.remarks.end(), source.remarks.begin(), source.remarks.end());
  ZEUS_RETURN_IF_ERROR(ReplayAll(options, contenders, std::move(source), comparison));
  Json result = ToJson(comparison);
  const std::optional<double>& beta = contenders.front().beta;
  result["beta"] = beta ? Json(*beta) : Json();
  result["problems"] = problems.ToJson();
  report::Report report = ToReport(comparison);
  AddSavedCarbon(carbon, clock, comparison, result, report);
  ZEUS_RETURN_IF_ERROR(WriteOutputs(options.outputs, result, report));
  return 0;
}

void AddSourceOptions(Verb verb, ClusterOptions& options) {
  verb.AddOption("--groups", options.cluster.groups,
                 "A trace of groups: CSV, also packed (xz, gz, zst); see docs/formats.md")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--pai", options.cluster.pai,
                 "A folder with pai_job_table.csv and pai_group_tag_table.csv of Alibaba's trace")
      .Check(NotEmpty())
      .TypeName("DIR");
  verb.AddOption("--generate", options.cluster.generate,
                 "A made-up cluster, as in jobs=1200000,groups=6000,seed=1")
      .Check(NotEmpty())
      .TypeName("SPEC");
  verb.AddOption("--write", options.write,
                 "Write the jobs as a trace of groups, and replay nothing")
      .Check(NotEmpty())
      .TypeName("FILE");
}

}  // namespace

void AddReplayClusterCommand(Verb replay, Action& action) {
  auto options = std::make_shared<ClusterOptions>();
  const Verb verb =
      replay.AddVerb("cluster", "Compare policies on the recurring jobs of a cluster");
  AddSourceOptions(verb, *options);
  AddSourceFlags(verb, options->source);
  verb.AddOption("--gpu", options->gpu, "GPU model that the jobs run on")
      .Check(NotEmpty())
      .ShowDefault()
      .TypeName("MODEL");
  verb.AddOption("--policy", options->policies,
                 "Policies to compare, separated by commas; default is always one")
      .ShowDefault()
      .TypeName("NAMES");
  verb.AddOption("--eta", options->eta, "From 0 (only time counts) to 1 (only energy counts)")
      .Check(NumberBetween(0, 1))
      .ShowDefault();
  verb.AddOption("--beta", options->beta,
                 "Stop a run at this many times the least cost; none: never stop early")
      .ShowDefault()
      .TypeName("NUMBER|none");
  verb.AddOption("--seeds", options->seeds,
                 "Replays, each with other luck; generated clusters are others each time, too")
      .Check(WholeNumberBetween(1, 10000))
      .ShowDefault();
  AddThreadsFlag(verb, options->threads);
  AddOutputFlags(verb, options->outputs);
  AddCarbonOptions(verb, options->carbon);
  verb.OnChosen([&action, options] { action = [options] { return RunCluster(*options); }; });
}

}  // namespace zeus::cli
