#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/zeus/http_server_options.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// The options of `zeus llm colosseum`, as they stand on the command line.
struct ColosseumOptions : HttpServerOptions {
  std::string gateway = "http://127.0.0.1:8080";
  std::string authorities{};
  std::vector<std::string> upstreams{};  // Not empty: a gateway of its own, instead of --gateway.
  std::vector<std::string> gpus{};       // One for each upstream, or none: auto.
  std::string pace = "together";
  double characters_per_second = 400;
  bool store_text = false;
  std::uint64_t max_duels = 32;
  std::uint64_t max_duels_per_address = 16;
  std::uint64_t max_prompt = 8192;
  std::uint64_t max_tokens = 512;
  double temperature = 1.0;
  double top_p = 0.95;
  std::uint64_t top_k = 50;
  double answer_timeout = 300;
};

// Serves until a signal. Returns the exit code.
Result<int> RunColosseum(const ColosseumOptions& options);

}  // namespace zeus::cli
