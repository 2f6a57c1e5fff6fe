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
  // Name of a zeus sim node; empty: each process simulates its GPU in virtual time.
  std::string node{};
  int iterations = 5;  // Measured iterations, both before and after planning.
  // Seconds of a forward pass of an average stage at the highest clock; backward takes twice as
  // long.
  double forward = 0.2;
  // Work of the last stage, which has the output layer, relative to an average stage.
  double imbalance = 1.25;
  double clock_change = 4;  // Milliseconds that a plan assumes for a change of the clock.
  double slowdown = 1.0;
  std::string straggler{};
  std::string server{};  // URL of a `zeus serve` that plans; empty: the job plans itself.
  bool json = false;
};

void AddOptions(cli::Verb app, RunOptions& options);

// Parses "2:1.2": stage 2 takes 1.2 times as long. Returns nullopt if the option was not given.
std::optional<Straggler> ParseStraggler(const RunOptions& options);

}  // namespace zeus::examples
