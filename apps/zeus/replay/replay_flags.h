#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/zeus/command_line.h"
#include "zeus/base/result.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/input/row_problems.h"
#include "zeus/replay/replay_job.h"

// What the verbs of `zeus replay` have in common.
namespace zeus::cli {

// Where the recorded jobs come from.
struct SourceFlags {
  std::filesystem::path trace_dir{};  // Empty: the built-in catalogue.
  bool strict = false;
};

// --trace-dir DIR, --strict.
void AddSourceFlags(Verb app, SourceFlags& flags);

struct LoadedJobs {
  std::vector<replay::ReplayJob> jobs{};
  std::string source{};  // "the traces in DIR", "the built-in catalogue".
  replay::RowProblems problems{};

  // kNotFound when the traces have no rows of this workload.
  Result<const replay::ReplayJob*> Find(std::string_view workload) const;
};

// The jobs on one GPU model. Bad rows of traces are told on standard error, or refused (--strict).
Result<LoadedJobs> LoadJobs(const SourceFlags& flags, std::string_view gpu_model, double eta);
// Bad rows are added to `problems`, for the caller to tell of, or refused.
Result<LoadedJobs> LoadJobs(const SourceFlags& flags, std::string_view gpu_model, double eta,
                            replay::RowProblems& problems);

// On standard error; nothing if there is none.
void Warn(const replay::RowProblems& problems);

// "zeus,default": each known and once.
Result<std::vector<std::string>> ParseContenders(const std::string& text);
// "2" or "none" (nullopt: runs are never stopped early).
Result<std::optional<double>> ParseBeta(std::string_view text);

// --threads N; as many as the machine has unless told.
void AddThreadsFlag(Verb app, int& threads);

}  // namespace zeus::cli
