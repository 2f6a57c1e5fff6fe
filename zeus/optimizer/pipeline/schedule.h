#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::pipeline {

// Instructions whose dependencies between stages we know. All others, and recomputation, depend on
// their neighbours in the stage only.
inline constexpr std::string_view kForward = "forward";
inline constexpr std::string_view kBackward = "backward";
inline constexpr std::string_view kForwardBackward = "forward_backward";  // Recomputes, then back.
inline constexpr std::string_view kRecomputation = "recomputation";
// Inserted where the profile knows them (problem.h); they take always the same time.
inline constexpr std::string_view kDataLoad = "data_load";  // Before every forward of its stage.
inline constexpr std::string_view kTransfer = "p2p";        // Between stages, beside the work.
inline constexpr std::string_view kOptimizerStep = "optimizer_step";  // The last of its stage.

// One entry of what a stage has to do, in its order.
struct Instruction {
  std::string name{};
  int microbatch = 0;
  int chunk = 0;  // Of the stage's layers: 0 unless the schedule is interleaved.

  friend auto operator<=>(const Instruction&, const Instruction&) = default;
};

// The order in which each stage issues its instructions during one iteration.
struct Schedule {
  std::string name{};  // "1f1b", "gpipe", "interleaved", "early_recompute", "custom"
  int microbatches = 0;
  int chunks = 1;
  std::vector<std::vector<Instruction>> stages{};
};

struct ScheduleShape {
  int stages = 0;
  int microbatches = 0;
  int chunks = 1;  // Only interleaved schedules have more than one.
};

// More instructions than this are refused: nobody would wait for the plan.
inline constexpr int kMostInstructions = 1 << 17;

// By its name in Schedule. kInvalidArgument for an unknown name, for stages, microbatches or chunks
// below 1, for more than kMostInstructions, and where an interleaved schedule does not exist (its
// microbatches are issued in groups of as many as there are stages).
Result<Schedule> MakeSchedule(std::string_view name, const ScheduleShape& shape);

// A list given by a user: a line for each stage, instructions separated by blanks or commas, # for
// comments. F3 is the forward of microbatch 3, B3 its backward, FB3 forward_backward, R3 the
// recomputation; F3.1 of chunk 1; name:3 for any other, name for one without a microbatch.
// kInvalidArgument names line and word.
Result<Schedule> ParseSchedule(std::string_view text);
// The same in text.
std::string ToText(const Schedule& schedule);

}  // namespace zeus::pipeline
