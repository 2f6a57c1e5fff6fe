#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "apps/zeus/command_line.h"
#include "apps/zeus/report_outputs.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/planner.h"

namespace zeus::cli {

// The command line of `zeus plan`.
struct PlanFlags {
  std::filesystem::path profile{};
  std::filesystem::path instance{};  // Instead of a profile and a schedule.
  std::string schedule = "1f1b";     // A name, or a file.
  int microbatches = 0;              // 0: as the schedule's file has it.
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

// How long an iteration may take, or takes: so many times the baseline's, or a time.
struct PaceTarget {
  std::optional<double> factor{};
  Seconds time{0};

  Seconds Of(Seconds baseline) const { return factor ? baseline * *factor : time; }
};

// "1.05x", "2.9s" or "2900ms".
Result<PaceTarget> ParsePaceTarget(const std::string& text, const char* option);

// What is asked for, of whatever pipeline.
struct PlanRequest {
  pipeline::CostKind cost = pipeline::CostKind::kHull;
  std::optional<PaceTarget> deadline{};  // nullopt: as the baseline.
  bool without_deadline = false;         // As slow as saves energy.
  std::optional<PaceTarget> pace{};      // Of a straggler.
  pipeline::ClockChangeRules rules{};
  bool whole_frontier = false;
  int replicas = 1;
};

// What the flags mean. kInvalidArgument names those that contradict each other.
Result<PlanRequest> RequestOf(const PlanFlags& flags);

}  // namespace zeus::cli
