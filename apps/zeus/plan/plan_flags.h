#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/zeus/command_line.h"
#include "apps/zeus/report_outputs.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::cli {

// The command line of `zeus plan`.
struct PlanFlags {
  std::filesystem::path profile{};
  std::filesystem::path instance{};  // Replaces profile and schedule.
  std::string schedule = "1f1b";     // A name, or the path of a file.
  int microbatches = 0;              // 0: as in the schedule's file.
  int chunks = 1;
  std::string stages{};
  std::optional<double> blocking_power{};
  int tensor_parallel = 1;
  int data_parallel = 1;
  std::string cost = "hull";
  std::string deadline{};
  std::string pace{};
  std::string latency = "0s";
  int least_instructions = 1;
  bool whole_frontier = false;
  std::filesystem::path from_reference{};
  std::filesystem::path out{};
  std::filesystem::path reference_schedule{};
  OutputFlags outputs{};
};

void AddPlanFlags(Verb app, PlanFlags& flags);

// The duration of an iteration: a multiple of the baseline's, or a time.
struct PaceTarget {
  std::optional<double> factor{};
  Seconds time{0};

  Seconds Of(Seconds baseline) const { return factor ? baseline * *factor : time; }
};

// Parses "1.05x", "2.9s" or "2900ms".
Result<PaceTarget> ParsePaceTarget(const std::string& text, const char* option);

// The request, independent of the pipeline it is for.
struct PlanRequest {
  pipeline::CostKind cost = pipeline::CostKind::kHull;
  std::optional<PaceTarget> deadline{};  // nullopt: the time of the baseline.
  bool without_deadline = false;         // As slow as still saves energy.
  std::optional<PaceTarget> pace{};      // Pace of a straggler.
  pipeline::ClockChangeRules rules{};
  bool whole_frontier = false;
  int replicas = 1;
};

// Interprets the flags. kInvalidArgument names those that contradict each other.
Result<PlanRequest> MakePlanRequest(const PlanFlags& flags);

// Loads the pipeline from an instance, or from a profile and a schedule. Error messages name the
// file and the fix.
Result<pipeline::Problem> LoadPipeline(const PlanFlags& flags);

// Returns for each stage of the pipeline the stage of the profile that it resembles. `text` is "4"
// or "0,2,5,7"; a number spreads the stages over those of the profile, keeping the first and the
// last.
Result<std::vector<int>> ParseStages(const std::string& text, int profiled);

}  // namespace zeus::cli
