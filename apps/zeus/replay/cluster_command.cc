#include "apps/zeus/replay/cluster_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/lists.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/replay/cluster_source.h"
#include "apps/zeus/replay/progress_bar.h"
#include "apps/zeus/replay/replay_outputs.h"
#include "zeus/base/parallel.h"
#include "zeus/replay/catalogue_jobs.h"
#include "zeus/replay/cluster/cluster_replay.h"
#include "zeus/replay/cluster/cluster_report.h"
#include "zeus/replay/cluster/group_trace.h"
#include "zeus/replay/trace_jobs.h"

namespace zeus::cli {
namespace {

struct Options {
  ClusterSourceFlags source{};
  std::string gpu = "v100";
  std::filesystem::path trace_dir{};
  std::string policy = "zeus,default,grid,knowledge_gradient";
  double eta = 0.5;
  double beta = 2.0;
  std::uint64_t seeds = 1;
  int threads = 0;  // As many as the machine has.
  bool strict = false;
  std::filesystem::path write{};
  OutputFlags outputs{};
};

Result<std::vector<replay::ReplayJob>> RecordedJobs(const Options& options) {
  if (options.trace_dir.empty()) return replay::CatalogueJobs(options.gpu, options.eta);
  return replay::ReadReplayJobs(options.trace_dir, options.gpu, options.eta);
}

// `default` is always among them: the others are compared with it.
Result<std::vector<replay::ContenderSpec>> Contenders(const Options& options) {
  std::vector<std::string> names;
  for (const std::string_view part : SplitAtCommas(options.policy)) {
    ZEUS_RETURN_IF_ERROR(replay::CheckContender(part));
    if (std::ranges::find(names, part) == names.end()) names.emplace_back(part);
  }
  if (std::ranges::find(names, "default") == names.end()) names.emplace_back("default");
  std::vector<replay::ContenderSpec> contenders;
  for (std::string& name : names)
    contenders.push_back({.name = std::move(name), .beta = options.beta});
  return contenders;
}

Result<ClusterSource> Open(const Options& options, const std::vector<replay::ReplayJob>& jobs,
                           std::uint64_t number, replay::RowProblems& problems) {
  ZEUS_TRY(ClusterSource source,
           OpenClusterSource(options.source, ByDefaultRuntime(jobs), number, problems));
  if (options.strict) ZEUS_RETURN_IF_ERROR(problems.Refuse());
  return source;
}

Result<std::vector<replay::WorkloadTotals>> ReplayOnce(
    const Options& options, const replay::ClusterTrace& trace,
    const std::vector<replay::ReplayJob>& jobs,
    const std::vector<replay::ContenderSpec>& contenders, std::uint64_t number) {
  const auto total = static_cast<std::int64_t>(trace.jobs.size() * contenders.size());
  ProgressBar progress(fmt::format("jobs of replay {} of {}", number + 1, options.seeds), total);
  return ReplayCluster(trace, jobs,
                       {.contenders = contenders,
                        .replay = number,
                        .threads = options.threads > 0 ? options.threads : MachineThreads(),
                        .jobs_done = [&progress](std::int64_t done) { progress.Add(done); }});
}

std::vector<std::string> Remarks(const Options& options, const replay::RowProblems& problems) {
  std::vector<std::string> remarks;
  if (options.trace_dir.empty())
    remarks.emplace_back(
        "What a run takes comes from the built-in workload catalogue; --trace-dir takes recorded "
        "traces.");
  if (!problems.empty())
    remarks.push_back(fmt::format("{} rows of the input were left out, {} were put right.",
                                  problems.left_out(), problems.put_right()));
  if (options.seeds > 1)
    remarks.push_back(
        fmt::format("Means over {} {}, with the standard deviation of one.", options.seeds,
                    options.source.generate.empty() ? "replays" : "generated clusters"));
  return remarks;
}

void Warn(const replay::RowProblems& problems) {
  if (!problems.empty()) fmt::print(stderr, "zeus: {}", problems.Summary());
}

Result<int> Write(const Options& options, const std::vector<replay::ReplayJob>& jobs) {
  replay::RowProblems problems;
  ZEUS_TRY(const ClusterSource source, Open(options, jobs, 0, problems));
  Warn(problems);
  ZEUS_RETURN_IF_ERROR(WriteGroupTrace(source.trace, options.write));
  fmt::print("{}: {}\n", options.write.string(), ToText(Describe(source.trace)));
  return 0;
}

Result<int> Run(const Options& options) {
  ZEUS_TRY(std::vector<replay::ReplayJob> jobs, RecordedJobs(options));
  if (!options.write.empty()) return Write(options, jobs);
  ZEUS_TRY(const std::vector<replay::ContenderSpec> contenders, Contenders(options));
  ZEUS_RETURN_IF_ERROR(CheckOutputs(options.outputs));
  replay::ClusterComparison comparison{.jobs = std::move(jobs)};
  for (const replay::ContenderSpec& contender : contenders)
    comparison.contenders.push_back(contender.name);
  replay::RowProblems problems;
  ZEUS_TRY(ClusterSource source, Open(options, comparison.jobs, 0, problems));
  Warn(problems);
  comparison.source = source.title;
  comparison.statistics = Describe(source.trace);
  comparison.remarks = Remarks(options, problems);
  comparison.remarks.insert(comparison.remarks.end(), source.remarks.begin(), source.remarks.end());
  for (std::uint64_t number = 0; number < options.seeds; ++number) {
    if (number > 0 && !options.source.generate.empty()) {
      ZEUS_TRY(source, Open(options, comparison.jobs, number, problems));
    }
    ZEUS_TRY(std::vector<replay::WorkloadTotals> totals,
             ReplayOnce(options, source.trace, comparison.jobs, contenders, number));
    comparison.replays.push_back(std::move(totals));
  }
  Json result = ToJson(comparison);
  result["beta"] = options.beta;
  result["problems"] = problems.ToJson();
  ZEUS_RETURN_IF_ERROR(WriteOutputs(options.outputs, result, ToReport(comparison)));
  return 0;
}

void AddSourceOptions(CLI::App& verb, Options& options) {
  verb.add_option("--groups", options.source.groups,
                  "A trace of groups: CSV, also packed (xz, gz, zst); see docs/formats.md")
      ->check(NotEmpty())
      ->type_name("FILE");
  verb.add_option("--pai", options.source.pai,
                  "A folder with pai_job_table.csv and pai_group_tag_table.csv of Alibaba's trace")
      ->check(NotEmpty())
      ->type_name("DIR");
  verb.add_option("--generate", options.source.generate,
                  "A made-up cluster, as in jobs=1200000,groups=6000,seed=1")
      ->check(NotEmpty())
      ->type_name("SPEC");
  verb.add_option("--write", options.write,
                  "Write the jobs as a trace of groups, and replay nothing")
      ->check(NotEmpty())
      ->type_name("FILE");
  verb.add_flag("--strict", options.strict,
                "Refuse input with bad rows instead of leaving them out");
}

}  // namespace

void AddReplayClusterCommand(CLI::App& replay, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = replay.add_subcommand(
      "cluster", "What the recurring jobs of a cluster would take under each policy");
  AddSourceOptions(*verb, *options);
  verb->add_option("--gpu", options->gpu, "GPU model that the jobs run on")
      ->check(NotEmpty())
      ->capture_default_str();
  verb->add_option("--trace-dir", options->trace_dir,
                   "Folder with recorded runs; without it, the built-in workload catalogue")
      ->check(NotEmpty())
      ->type_name("DIR");
  verb->add_option("--policy", options->policy, "Policies to compare, with commas between them")
      ->capture_default_str();
  verb->add_option("--eta", options->eta, "1: only energy counts, 0: only time")
      ->check(NumberBetween(0, 1))
      ->capture_default_str();
  verb->add_option("--beta", options->beta, "Runs are stopped at this multiple of the least cost")
      ->check(NumberBetween(1, 1e6))
      ->capture_default_str();
  verb->add_option("--seeds", options->seeds,
                   "Replays, each with other luck; generated clusters are others each time, too")
      ->check(WholeNumberBetween(1, 10000))
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "0: as many as the machine runs at a time")
      ->check(WholeNumberBetween(0, 1024))
      ->capture_default_str();
  AddOutputFlags(*verb, options->outputs);
  verb->callback([&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace zeus::cli
