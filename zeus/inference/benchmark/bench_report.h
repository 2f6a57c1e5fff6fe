#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/inference/benchmark/benchmark.h"
#include "zeus/report/figure.h"

namespace zeus::inference {

// Everything `zeus llm bench` found out, in the form that every output is made from.
struct BenchReport {
  std::vector<std::string> command{};
  std::string host{};
  std::string url{};
  std::string model{};
  std::string load{};  // "8 at once", for people.
  std::uint64_t seed = 0;
  unsigned planned_runs = 1;
  std::vector<MeasuredGpu> gpus{};
  std::vector<std::string> remarks{};
  std::vector<BenchmarkRun> runs{};  // Never empty when a report is made.
  // Runs of the same load with the gateway's governor in another mode, to compare `runs` with.
  std::vector<BenchmarkRun> baseline{};
};

// The mean over the runs that have the number. With several runs sigma is the standard error of
// their mean where that is larger than the error of one measurement.
std::optional<Estimate> MeanOver(
    const std::vector<BenchmarkRun>& runs,
    const std::function<std::optional<Estimate>(const RunSummary&)>& getter);

// Schema "zeus.llm_bench/1", see docs/formats.md; zeus diff reads it.
Json ToJson(const BenchReport& report);

// One line of JSON for each request of a run: times in seconds after the run's begin, tokens,
// energy.
std::string ToRequestLines(const BenchmarkRun& run);

// Tables and figures. Several runs are shown by their means; figures are of the first one.
report::Report ToReport(const BenchReport& report);

// The exit code of a run as zeus diff reads it: 0 when requests finished and none was interrupted.
int ExitCodeOf(const RunSummary& run);

}  // namespace zeus::inference
