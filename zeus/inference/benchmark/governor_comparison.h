#pragma once

#include <optional>
#include <string>

#include "zeus/inference/benchmark/bench_report.h"

namespace zeus::inference {

// Figures of a load under one mode of a gateway's governor, as means over its runs.
struct GovernorFigures {
  std::string mode{};                // "off", "on"
  std::optional<Estimate> energy{};  // The joules that the run took.
  std::optional<Estimate> per_request{};
  std::optional<Estimate> missed{};  // Share of the requests that missed a target or failed.
  std::optional<Estimate> ttft{};    // 90th percentiles, in seconds.
  std::optional<Estimate> tpot{};
  std::optional<Hertz> clock{};
};

struct GovernorComparison {
  GovernorFigures baseline{};
  GovernorFigures present{};
  std::string energy_source{};      // "gpus": all of the local GPUs, "gateway": of the requests.
  std::optional<Estimate> saved{};  // Share of the baseline's energy.
};

// nullopt when the report compares nothing.
std::optional<GovernorComparison> CompareGovernor(const BenchReport& report);

// "governor on: 21 ± 1 % less energy than off; ...".
std::string FindingOf(const GovernorComparison& comparison);
report::Table ToTable(const GovernorComparison& comparison);

}  // namespace zeus::inference
