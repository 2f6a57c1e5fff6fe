#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/clock/governor.h"

// A simulated inference engine under a load, with its clock fixed or driven by a ClockGovernor, in
// virtual time.
namespace zeus::testing {

struct LoadRequest {
  Seconds arrival;
  unsigned prompt_tokens;
  unsigned output_tokens;
};
using RequestLoad = std::vector<LoadRequest>;  // In the order of arrival.

// Where the recorded traces are: ZEUS_LLM_DATA_DIR, or shared/data/llm beside the repository.
std::filesystem::path LlmDataFolder();
// "azure_llm_2023_conversation.csv"
Result<RequestLoad> ReadRequestTrace(const std::filesystem::path& path);
// The same requests arriving `speed` times as fast, those of the first `length`.
RequestLoad AtSpeed(const RequestLoad& load, double speed, Seconds length);
// The same requests arriving faster or slower by turns: at `least` times the speed in the first
// and last part of a day of `length`, at `most` times in its middle, along a cosine.
RequestLoad AlongDay(const RequestLoad& load, double least, double most, Seconds length);
// Requests of equal size at equal distances.
RequestLoad Regular(double per_second, Seconds length, unsigned prompt, unsigned output);

// Latencies that a request had.
struct ServedRequest {
  Seconds ttft;
  Seconds tpot;  // 0 with a single output token.
};

struct ServedLoad {
  Joules energy{};  // Exact, until a fixed time after the last arrival.
  std::vector<ServedRequest> requests{};
  unsigned changes = 0;  // How often the clock was set.
  std::optional<GovernorStatus> governor{};
  double mean_clock = 0;  // Relative to the highest one, over time with requests in flight.
};

// Share of the requests that missed a target.
double MissedShare(const ServedLoad& served, const ServiceTargets& targets);

struct LoopOptions {
  std::optional<Hertz> fixed{};               // nullopt: the highest clock.
  std::optional<GovernorOptions> governor{};  // Its clocks are filled in.
  // Relative standard deviation of the prompt tokens that the governor is told.
  double prompt_error = 0;
  // Time from a decision until the clock has changed.
  Seconds lock_delay{0};
  Seconds period{0.25};
  bool log = false;  // Prints every change of the clock.
  std::string model = "llama-3.1-8b";
  std::string gpu = "H100";
  unsigned gpus = 1;
};

// The clocks of a kind of GPU, ascending.
std::vector<Hertz> EngineClocks(std::string_view gpu);
Result<ServedLoad> Serve(const RequestLoad& load, const LoopOptions& options);

}  // namespace zeus::testing
