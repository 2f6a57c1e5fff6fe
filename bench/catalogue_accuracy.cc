// Prints how well the workload catalogue agrees with the recorded traces, as a Markdown table for
// docs/workload-catalogue.md:
//
//     catalogue_accuracy [TRACE_DIRECTORY]
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/device/sim/testing/trace_accuracy.h"

namespace {

using zeus::sim::testing::Accuracy;
using zeus::sim::testing::Mean;
using zeus::sim::testing::Quantile;

void PrintRow(std::string_view name, const Accuracy& accuracy) {
  const auto errors = [](const std::vector<double>& values) {
    return fmt::format("{:.2f} | {:.2f} | {:.2f}", 100 * Quantile(values, 0.5), 100 * Mean(values),
                       100 * Quantile(values, 0.95));
  };
  fmt::print("| {} | {} | {} | {} | {:.2f} |\n", name, accuracy.time_errors.size(),
             errors(accuracy.time_errors), errors(accuracy.power_errors),
             100 * Mean(accuracy.choice_losses));
}

zeus::Status PrintTable(const std::filesystem::path& directory) {
  ZEUS_TRY(const auto traces, zeus::sim::testing::ReadTraces(directory));
  ZEUS_TRY(const auto accuracies, zeus::sim::testing::Measure(traces));
  fmt::print(
      "| GPU | points | time: median % | mean % | p95 % | power: median % | mean % | p95 % | "
      "choice loss % |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& [id, accuracy] : accuracies) PrintRow(id, accuracy);
  PrintRow("all", zeus::sim::testing::Pool(accuracies));
  return zeus::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  const bool given = argc > 1;
  const std::filesystem::path directory =
      given ? std::filesystem::path(argv[1]) : zeus::sim::testing::DefaultTraceDirectory();
  // The traces are not part of the repository: without them there is nothing to compare with.
  if (!given && !std::filesystem::exists(directory)) {
    fmt::print("catalogue_accuracy: skipped, no traces in {} (set ZEUS_TRACE_DIR)\n",
               directory.string());
    return 0;
  }
  const auto status = PrintTable(directory);
  if (status.ok()) return 0;
  fmt::print(stderr, "catalogue_accuracy: {}\n", status.error().message);
  return 1;
}
