#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/diff/run_file.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/statistics.h"

namespace zeus::cli {

enum class Method { kWelch, kBootstrap };

struct DiffOptions {
  Metric metric = Metric::kEnergy;
  std::string device = "total";
  double max_regress = 0.03;  // 0.03 allows the new mean to be 3 % above the base.
  double confidence = 0.95;
  Method method = Method::kWelch;
  std::uint64_t seed = 1;  // Seed of the bootstrap.
};

enum class Verdict {
  kOk,          // The increase is below the allowed one, with the requested confidence.
  kRegression,  // The increase is above the allowed one, with that confidence.
  kUndecided,   // The data are compatible with both.
};
const char* VerdictName(Verdict verdict);  // "ok", "regression", "undecided"

struct Judgement {
  Verdict verdict = Verdict::kUndecided;
  SampleSummary base;
  SampleSummary changed;
  std::optional<double> ratio;  // new / base; unset, like the bounds, if the data do not suffice.
  std::optional<Interval> bounds;
  // Number of runs on each side that would decide, if they scatter like the present ones. Unset if
  // the verdict is clear, or if no practical number would do.
  std::optional<std::size_t> runs_needed;
  std::string reason;  // One sentence.
};

// Decides without any input or output. Shared errors are relative, see RatioSide.
Judgement Judge(const std::vector<double>& base, const std::vector<double>& changed,
                double base_shared_error, double changed_shared_error, const DiffOptions& options);

struct Comparison {
  DiffOptions options;
  std::string base_path;
  std::string new_path;
  std::string command;
  Judgement judgement;
  std::vector<std::string> warnings;
};

// Compares two files of `zeus run --json`, or of `zeus llm bench --json`.
Result<Comparison> Compare(const RunFile& base, const RunFile& changed, const DiffOptions& options);

std::string ToText(const Comparison& comparison);
std::string ToMarkdown(const Comparison& comparison);
std::string ToJUnit(const Comparison& comparison);
Json ToJson(const Comparison& comparison);

}  // namespace zeus::cli
