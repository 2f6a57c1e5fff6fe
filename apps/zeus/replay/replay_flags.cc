#include "apps/zeus/replay/replay_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "zeus/base/parallel.h"
#include "zeus/base/text.h"
#include "zeus/replay/replay_job.h"

namespace zeus::cli {

void AddSourceFlags(Verb app, SourceFlags& flags) {
  app.AddOption("--trace-dir", flags.trace_dir,
                "Replay the runs recorded there: summary_train.csv and summary_power_GPU.csv, "
                "also .xz, .gz or .zst; without it, the built-in workload catalogue")
      .Check(NotEmpty())
      .TypeName("DIR");
  app.AddFlag("--strict", flags.strict, "Refuse input with bad rows instead of leaving them out");
}

Result<const replay::ReplayJob*> LoadedJobs::Find(std::string_view workload) const {
  ZEUS_RETURN_IF_ERROR(replay::FindWorkload(workload));
  const auto found = std::ranges::find(jobs, workload, &replay::ReplayJob::label);
  if (found == jobs.end())
    return Error{ErrorCode::kNotFound, fmt::format("{} have no runs of {}", source, workload)};
  return &*found;
}

Result<LoadedJobs> LoadJobs(const SourceFlags& flags, std::string_view gpu_model, double eta) {
  replay::RowProblems problems;
  ZEUS_TRY(LoadedJobs loaded, LoadJobs(flags, gpu_model, eta, problems));
  Warn(problems);
  loaded.problems = std::move(problems);
  return loaded;
}

Result<LoadedJobs> LoadJobs(const SourceFlags& flags, std::string_view gpu_model, double eta,
                            replay::RowProblems& problems) {
  LoadedJobs loaded;
  if (flags.trace_dir.empty()) {
    loaded.source = "the built-in catalogue";
    ZEUS_TRY(loaded.jobs, replay::CatalogueJobs(gpu_model, eta));
    return loaded;
  }
  loaded.source = fmt::format("the traces in {}", Printable(flags.trace_dir.string()));
  ZEUS_TRY(loaded.jobs, replay::ReadReplayJobs(flags.trace_dir, gpu_model, eta, problems));
  if (flags.strict) ZEUS_RETURN_IF_ERROR(problems.Refuse());
  return loaded;
}

void Warn(const replay::RowProblems& problems) {
  if (!problems.empty()) PrintErrorText(fmt::format("zeus: {}", problems.Summary()));
}

Result<std::vector<std::string>> ParseContenders(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string_view name : SplitAtCommas(text)) {
    ZEUS_RETURN_IF_ERROR(replay::CheckContender(name));
    if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  }
  return names;
}

Result<std::optional<double>> ParseBeta(std::string_view text) {
  if (text == "none") return std::optional<double>();
  const auto beta = ParseDouble(text);
  if (!beta.ok() || !std::isfinite(beta.value()) || beta.value() < 1)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("beta is {}: it must be 1 or more, or none to never stop a "
                             "run early",
                             Quote(text))};
  return std::optional(beta.value());
}

void AddThreadsFlag(Verb app, int& threads) {
  constexpr std::uint64_t kMostThreads = 1024;
  threads = MachineThreads();
  app.AddOption("--threads", threads,
                "Threads that work at a time; the results do not depend on it")
      .Check(WholeNumberBetween(1, kMostThreads))
      .TypeName("N");
}

}  // namespace zeus::cli
