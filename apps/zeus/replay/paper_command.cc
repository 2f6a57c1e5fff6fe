#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/zeus/commands.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/progress_bar.h"
#include "apps/zeus/replay/replay_flags.h"
#include "apps/zeus/report_outputs.h"
#include "apps/zeus/terminal.h"
#include "studies/paper/cluster_study.h"
#include "studies/paper/paper_report.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/replay/replay_job.h"

namespace zeus::cli {
namespace {

namespace fs = std::filesystem;
using replay::paper::JobsOfGpu;
using replay::paper::Reproduction;

struct PaperOptions {
  fs::path trace_dir{};
  int seeds = 50;
  int clusters = 10;
  int threads = 1;
  fs::path out{};
  OutputFlags outputs{};
};

std::string SourceTitle(const PaperOptions& options) {
  if (options.trace_dir.empty()) return "the built-in workload catalogue";
  return "the traces in " + Printable(options.trace_dir.string());
}

Result<replay::paper::Study> RunStudy(const PaperOptions& options) {
  std::atomic<std::int64_t> told{0};
  ProgressBar progress("thousandths of the jobs", 1000);
  const auto source = [&](std::string_view gpu_model, double eta) -> Result<JobsOfGpu> {
    if (options.trace_dir.empty()) return replay::CatalogueJobs(gpu_model, eta);
    return replay::ReadReplayJobs(options.trace_dir, gpu_model, eta);
  };
  return replay::paper::RunStudy(source, {.seeds = options.seeds,
                                          .threads = options.threads,
                                          .progress = [&](std::size_t done, std::size_t of) {
                                            const auto now =
                                                static_cast<std::int64_t>(1000 * done / of);
                                            progress.Add(now - told.exchange(now));
                                          }});
}

Result<replay::ClusterComparison> RunCluster(const PaperOptions& options, const JobsOfGpu& jobs) {
  replay::paper::ClusterStudyOptions study{.clusters = options.clusters,
                                           .threads = options.threads};
  ProgressBar progress("jobs of clusters", CountJobs(study));
  study.jobs_done = [&progress](std::int64_t done) { progress.Add(done); };
  return RunClusterStudy(jobs, study);
}

// Runs the drift of sentiment analysis, as in the paper (Zeus §6.4). The study guarantees that the
// job exists.
Result<std::vector<replay::paper::DriftCourse>> RunDriftOn(const JobsOfGpu& jobs, int seeds) {
  return replay::paper::RunDrift(*std::ranges::find(jobs, "bert_sa", &replay::ReplayJob::label),
                                 seeds);
}

Status CheckWholeFolder(const fs::path& folder) {
  ZEUS_RETURN_IF_ERROR(CheckOutputs({.figures = folder}));
  ZEUS_RETURN_IF_ERROR(CheckOutputs({.figures = folder / "figures"}));
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return Ok();
  ZEUS_RETURN_IF_ERROR(CheckWritable(folder / "paper.json"));
  return CheckWritable(folder / "paper.html");
}

// Writes the page, the numbers, and a folder of figures.
Status WriteFolder(const fs::path& folder, const Json& result, const report::Report& report) {
  ZEUS_TRY(const std::string left_out, WriteFiles(report, folder / "figures"));
  if (!left_out.empty()) PrintErrorText(fmt::format("zeus: {}\n", left_out));
  ZEUS_RETURN_IF_ERROR(WriteWhole(folder / "paper.json", JsonText(result, 1) + "\n"));
  const Result<std::string> page = ToHtml(report);
  if (page.ok()) return WriteWhole(folder / "paper.html", page.value());
  PrintErrorText(fmt::format("zeus: no page: {}\n", page.error().message));
  return Ok();
}

// Returns a summary of a few lines: how many claims hold, and where the files are.
std::string MakeSummary(const report::Report& report, const fs::path& folder) {
  std::string text = fmt::format("{} ({})\n", report.title, report.subtitle);
  for (const std::string& finding : report.findings) text += fmt::format("- {}\n", finding);
  return text + fmt::format(
                    "Every figure, table and claim is in {}: paper.html, paper.json, "
                    "figures.\n",
                    Printable(folder.string()));
}

Result<int> RunPaper(const PaperOptions& options) {
  ZEUS_RETURN_IF_ERROR(CheckOutputs(options.outputs));
  if (!options.out.empty()) ZEUS_RETURN_IF_ERROR(CheckWholeFolder(options.out));
  Reproduction reproduction{.source = SourceTitle(options), .seeds = options.seeds};
  ZEUS_TRY(reproduction.study, RunStudy(options));
  ZEUS_TRY(reproduction.cluster, RunCluster(options, reproduction.study.usual_jobs()));
  ZEUS_TRY(reproduction.drift, RunDriftOn(reproduction.study.usual_jobs(), options.seeds));
  const Json result = ToJson(reproduction);
  report::Report report = ToReport(reproduction);
  if (options.trace_dir.empty())
    report.findings.insert(report.findings.begin(),
                           "The built-in catalogue, fitted to the paper's traces, stands in for "
                           "them: with the traces (--trace-dir) more claims come out.");
  if (!options.out.empty()) ZEUS_RETURN_IF_ERROR(WriteFolder(options.out, result, report));
  if (options.out.empty() || options.outputs.json) {
    ZEUS_RETURN_IF_ERROR(WriteOutputs(options.outputs, result, report));
    return 0;
  }
  ZEUS_RETURN_IF_ERROR(WriteFiles(options.outputs, report));
  Show(stdout, MakeSummary(report, options.out));
  return 0;
}

}  // namespace

void AddReplayPaperCommand(Verb replay, Action& action) {
  auto options = std::make_shared<PaperOptions>();
  const Verb verb = replay.AddVerb(
      "paper", "Reproduce the figures and tables of the Zeus paper, and judge its claims");
  verb.AddOption("--trace-dir", options->trace_dir,
                 "Folder with the paper's traces; without it, the built-in workload catalogue")
      .Check(NotEmpty())
      .TypeName("DIR");
  verb.AddOption("--seeds", options->seeds, "Experiments with each policy and job")
      .Check(WholeNumberBetween(2, 100'000))
      .ShowDefault();
  verb.AddOption("--clusters", options->clusters, "Generated clusters, for Figure 9")
      .Check(WholeNumberBetween(1, 1000))
      .ShowDefault();
  AddThreadsFlag(verb, options->threads);
  verb.AddOption("--out", options->out,
                 "Write everything into a folder (the page, the numbers as JSON, the figures), and "
                 "print a summary only")
      .Check(NotEmpty())
      .TypeName("DIR");
  AddOutputFlags(verb, options->outputs);
  verb.OnChosen([&action, options] { action = [options] { return RunPaper(*options); }; });
}

}  // namespace zeus::cli
