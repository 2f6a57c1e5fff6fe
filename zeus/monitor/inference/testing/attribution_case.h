#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

// Scores InferenceAttribution against the exact truth of simulated engines: a simulated H100 serves
// a language model, a proxy sees tokens with jitter, and a sensor shows the energy. Used by tests
// and by the benchmark that prints the tables of docs/llm-attribution.md.
namespace zeus::testing {

struct LoadPoint {
  Seconds arrival;
  unsigned prompt;  // Tokens.
  unsigned output;
};
using Load = std::vector<LoadPoint>;

// The folder of the recorded traces: ZEUS_LLM_TRACE_DIR, else beside the repository.
std::filesystem::path RecordedLoadDirectory();
// Arrivals and lengths of a recorded trace ("conversation" or "code"), `speed` times as fast, as
// far as they fit into `duration`.
Result<Load> RecordedLoad(std::string_view trace, double speed, Seconds duration);
// Bursts of arrivals with lengths as in conversations, from a seed.
Load SyntheticLoad(std::uint64_t seed, double requests_per_second, Seconds duration);

enum class PromptCounts {
  kAtEnd,         // In the usage at the end of the stream; only bytes before.
  kAtFirstToken,  // With the first event.
  kNever,         // Bytes only.
};

struct AttributionCase {
  std::vector<Load> engines;  // One engine each, all on one GPU.
  std::string model = "llama-3.1-8b";
  Seconds jitter{0.0008};  // Mean of the exponential delay of a token.
  unsigned tokens_per_event = 1;
  PromptCounts counts = PromptCounts::kAtEnd;
  double bytes_scatter = 0.15;  // Relative scatter of the bytes per token around 4.3.
  Seconds sensor_period{0.1};
  Seconds sensor_window{0};  // The part of each period that the sensor sees; 0: all of it.
  Seconds sensor_lag{0.02};  // From the end of an interval until its energy is told.
  // Now and then the sensor is not read for up to this long: then all of that time is one interval.
  Seconds sensor_gap{0};
  Watts stranger{0};  // Power of a GPU on which only another process runs, every other half minute.
  std::uint64_t seed = 1;
  Clock* stopwatch = nullptr;  // Measures the cost of the attribution where given.
};

// Errors of energies, as parts of the truth.
struct ErrorSummary {
  double median = 0;
  double ninetieth = 0;  // The 90th percentile.
};

struct AttributionScore {
  std::size_t requests = 0;
  std::size_t settled = 0;
  double mean_batch = 0;
  ErrorSummary energy;
  ErrorSummary prefill;
  ErrorSummary decode;
  // Whole GPU in flight, equal share of time, by output tokens, by all tokens, mean joules per
  // output token.
  static constexpr std::size_t kRules = 5;
  std::array<ErrorSummary, kRules> rules{};
  // The part of requests whose truth is within 1.96 sigma.
  double coverage = 0;
  double prefill_coverage = 0;
  double decode_coverage = 0;
  double conservation = 0;  // Sum of the accounts over measured energy, less 1.
  // The same for the sum of all final requests, the idle energy and that of others.
  double requests_conservation = 0;
  double requests_over_truth = 0;
  // The part of requests longer than 1 s whose figure at their end was within 5 % of the final one.
  double provisional_within = 0;
  // The part of requests of any length whose final figure was within 1.96 sigma of that one, and
  // the largest ratio of the two, for requests of more than a tenth of the mean energy.
  double provisional_coverage = 0;
  double provisional_worst = 0;
  Seconds mean_lag{};  // From the end of a request to its final figure.
  Joules other{};
  Joules stranger{};
  double microseconds_per_token = 0;
  std::string law;  // As learned, for people.
};

Result<AttributionScore> Score(const AttributionCase& scenario);

}  // namespace zeus::testing
