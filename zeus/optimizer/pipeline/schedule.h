#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::pipeline {

// Instructions with known dependencies between stages. All others, and recomputation, only depend
// on the instruction before them in their stage.
inline constexpr std::string_view kForward = "forward";
inline constexpr std::string_view kBackward = "backward";
// A backward that recomputes the activations first.
inline constexpr std::string_view kForwardBackward = "forward_backward";
inline constexpr std::string_view kRecomputation = "recomputation";
// Instructions that MakeProblem() inserts if the profile has them. Their time does not depend on
// the clock: data is loaded before every forward of the stage, transfers run between stages beside
// their computations, and the optimizer steps at the end of the stage.
inline constexpr std::string_view kDataLoad = "data_load";
inline constexpr std::string_view kTransfer = "p2p";
inline constexpr std::string_view kOptimizerStep = "optimizer_step";

// One instruction in the sequence of a stage.
struct Instruction {
  std::string name{};
  int microbatch = 0;
  int chunk = 0;  // Chunk of the stage's layers; 0 unless the schedule is interleaved.

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

// Schedules with more instructions are refused, because planning them takes too long.
inline constexpr int kMostInstructions = 1 << 17;

// Makes a schedule by its name (see Schedule::name). Returns kInvalidArgument for an unknown name,
// for stages, microbatches or chunks below 1, for more than kMostInstructions, and when the
// microbatches of an interleaved schedule are not a multiple of the stages.
Result<Schedule> MakeSchedule(std::string_view name, const ScheduleShape& shape);

// Parses a user's schedule: one line for each stage, with instructions separated by blanks or
// commas, and comments after #. F3 is the forward of microbatch 3, B3 its backward, FB3 its
// forward_backward, R3 its recomputation, and F3.1 its forward in chunk 1. Other instructions are
// written name:3, or name without a microbatch. kInvalidArgument names line and word.
Result<Schedule> ParseSchedule(std::string_view text);
// Writes a schedule in the same format.
std::string ToText(const Schedule& schedule);

}  // namespace zeus::pipeline
