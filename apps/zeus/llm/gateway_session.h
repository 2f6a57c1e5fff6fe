#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/carbon/carbon_accounting.h"

namespace zeus::cli {

// The options of `zeus llm gateway`, as they stand on the command line.
struct LlmGatewayOptions {
  std::vector<std::string> upstreams{};
  std::vector<std::string> gpus{};    // One for each upstream, or none: auto.
  std::vector<std::string> models{};  // Likewise: "a,b".
  std::string listen = "127.0.0.1:8080";
  std::string tls_certificate{};
  std::string tls_key{};
  std::string authorities{};
  std::string annotate = "all";
  std::string ask_usage{};  // Empty: unless bodies are to stay as they are.
  std::string key_header{};
  std::string log{};
  bool store_text = false;
  bool spread_idle = false;
  std::uint64_t keep = 10'000;
  std::uint64_t max_body = std::uint64_t{64} << 20;
  std::uint64_t max_header = 64 * 1024;
  std::uint64_t max_connections = 0;  // 0: by the limit of open files.
  double connect_timeout = 5;
  double first_byte_timeout = 600;
  double idle_timeout = 300;
  double shutdown_timeout = 30;
  std::string slo{};         // "ttft=1s,tpot=50ms"; empty: no governor.
  bool slo_observe = false;  // The governor touches no clock.
  CarbonOptions carbon{};
};

// Serves until a signal. Returns the exit code.
Result<int> RunLlmGateway(const LlmGatewayOptions& options);

}  // namespace zeus::cli
