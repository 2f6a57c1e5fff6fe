#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/process/signal_watch.h"

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

// A running gateway with the GPUs that it meters.
class LlmGateway {
 public:
  // It listens when this returns. The clock must outlive it.
  static Result<std::unique_ptr<LlmGateway>> Start(const LlmGatewayOptions& options, Clock& clock);
  ~LlmGateway();  // Ends at once.
  LlmGateway(const LlmGateway&) = delete;
  LlmGateway& operator=(const LlmGateway&) = delete;

  const std::string& url() const;
  // Prints the address, serves until a signal, and ends in an orderly way. Returns the exit code.
  Result<int> ServeUntil(SignalWatch& signals, const Clock& clock, Seconds timeout);

 private:
  struct Parts;
  explicit LlmGateway(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

// Serves until a signal. Returns the exit code.
Result<int> RunLlmGateway(const LlmGatewayOptions& options);

}  // namespace zeus::cli
