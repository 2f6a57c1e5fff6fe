#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::cli {

struct LlmSimOptions {
  std::string model;
  std::string served_name;  // Empty: the model's own.
  std::string node = sim::ChosenNodeName();
  std::vector<unsigned> gpus{0};
  std::string listen = "127.0.0.1:8000";
  bool truth = false;
  std::string text_from;
  std::uint64_t seed = 1;
  double mean_output = 200;
  unsigned token_budget = 2048;
  unsigned max_sequences = 256;
  std::optional<std::uint64_t> kv_tokens;
  double prefix_hit_rate = 0;

  // Faults.
  unsigned coalesce = 1;
  double jitter = 0;  // Seconds, as are the other times.
  bool no_usage = false;
  bool no_done = false;
  double stall = 0;
  double stall_time = 2;
  double disconnect = 0;
  double error = 0;

  double shutdown_timeout = 10;
};

// Serves until a signal. Returns the exit code.
Result<int> RunLlmSim(const LlmSimOptions& options);

}  // namespace zeus::cli
