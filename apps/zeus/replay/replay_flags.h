#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/zeus/command_line.h"
#include "zeus/base/result.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/input/csv_reader.h"
#include "zeus/replay/replay_job.h"

// Flags and inputs that the verbs of `zeus replay` share.
namespace zeus::cli {

// The source of the recorded jobs.
struct SourceFlags {
  std::filesystem::path trace_dir{};  // Empty: the built-in catalogue.
  bool strict = false;
};

// Declares --trace-dir DIR and --strict.
void AddSourceFlags(Verb app, SourceFlags& flags);

struct LoadedJobs {
  std::vector<replay::ReplayJob> jobs{};
  std::string source{};  // "the traces in DIR", "the built-in catalogue".
  replay::RowProblems problems{};

  // kNotFound when the traces have no rows of this workload.
  Result<const replay::ReplayJob*> Find(std::string_view workload) const;
};

// Loads the jobs on one GPU model. Bad rows of traces are printed on standard error, or rejected
// with --strict.
Result<LoadedJobs> LoadJobs(const SourceFlags& flags, std::string_view gpu_model, double eta);
// As above, but bad rows are added to `problems` for the caller to print.
Result<LoadedJobs> LoadJobs(const SourceFlags& flags, std::string_view gpu_model, double eta,
                            replay::RowProblems& problems);

// Prints the problems on standard error, if there are any.
void Warn(const replay::RowProblems& problems);

// Parses "zeus,default"; each name must be known and unique.
Result<std::vector<std::string>> ParseContenders(const std::string& text);
// Parses "2" or "none" (nullopt: runs are never stopped early).
Result<std::optional<double>> ParseBeta(std::string_view text);

// Declares --threads N; the default is the number of the machine's.
void AddThreadsFlag(Verb app, int& threads);

}  // namespace zeus::cli
