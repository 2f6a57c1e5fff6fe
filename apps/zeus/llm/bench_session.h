#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/report_outputs.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// The options of `zeus llm bench`, as they stand on the command line.
struct LlmBenchOptions {
  std::string url{};
  std::string model{};
  std::string api = "chat";
  std::optional<std::uint64_t> concurrency{};
  std::optional<double> rate{};
  std::string steps{};
  std::string trace{};
  double speed = 1;
  std::optional<std::uint64_t> requests{};
  std::string duration{};
  std::string prompts{};
  std::string prompt_tokens{};
  std::string output_tokens{};
  bool any_length = false;
  std::optional<std::uint64_t> max_seqs{};
  std::string slo{};
  std::string governor{};  // "off,on": modes of the gateway's governor to compare.
  std::string gpus{};
  std::string api_key_file{};
  std::string authorities{};
  std::string timeout = "10min";
  std::string idle_timeout = "2min";
  unsigned repeat = 1;
  unsigned warmup = 0;
  std::uint64_t seed = 1;
  std::filesystem::path request_log{};
  OutputFlags outputs{};
};

// Runs the load and writes the outputs. Returns the exit code.
Result<int> RunLlmBench(const LlmBenchOptions& options);

}  // namespace zeus::cli
