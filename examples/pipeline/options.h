#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/zeus/command_line.h"

namespace zeus::examples {

struct Straggler {
  int stage = 0;
  double slowdown = 1;
};

struct RunOptions {
  int stages = 4;
  int microbatches = 8;
  std::string gpu = "A100";
  std::uint64_t seed = 1;
  std::string node{};       // Of zeus sim; empty: GPUs of the processes, in virtual time.
  int iterations = 5;       // That are measured, before and after planning.
  double forward = 0.2;     // Seconds, of an average stage at the highest clock; backward: twice.
  double imbalance = 1.25;  // The last stage, which has the output layer, against an average one.
  double clock_change = 4;  // Milliseconds that a plan charges for a change of the clock.
  double slowdown = 1.0;
  std::string straggler{};
  std::string server{};  // Plans come from a `zeus serve`.
  bool json = false;
};

void AddOptions(cli::Verb app, RunOptions& options);

// "2:1.2": stage 2 takes 1.2 times as long. nullopt without one.
std::optional<Straggler> StragglerOf(const RunOptions& options);

}  // namespace zeus::examples
