#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/inference/benchmark/load_generator.h"
#include "zeus/monitor/measurement.h"

// The figures of a benchmark, from what was recorded. No clocks, no input, no output.
namespace zeus::inference {

// A number and one standard deviation of it; 0 where that is not known.
struct Estimate {
  double value = 0;
  double sigma = 0;
};

// The part of a load in which the server is fully used: from the first token of request number
// `saturation` to the end of request number (requests - saturation - 1), each in the order of these
// events. Before it the batch fills, after it the batch empties.
struct SteadyWindow {
  TimePoint begin;
  TimePoint end;

  Seconds time() const { return end - begin; }
  bool Contains(TimePoint time) const { return time > begin && time <= end; }
};
// kUnavailable, with the number of requests that would do, when the load was too short.
Result<SteadyWindow> FindSteadyWindow(const LoadRecord& record, std::size_t saturation);

// The value below which a share of the values lies, interpolated between neighbours; sigma is half
// the distance between the values one standard deviation of the rank below and above. `sorted` must
// not be empty.
Estimate Percentile(std::span<const double> sorted, double share);

// A latency in seconds.
struct LatencySummary {
  std::size_t count = 0;
  Estimate mean{};
  Estimate p50{};
  Estimate p90{};
  Estimate p99{};
};
LatencySummary SummarizeLatency(std::vector<double> seconds);

// Latencies that a request must keep to count as good.
struct LatencyTargets {
  std::optional<Seconds> ttft{};
  std::optional<Seconds> tpot{};
};
// Parses "ttft=1s,tpot=50ms"; either may be absent.
Result<LatencyTargets> ParseLatencyTargets(std::string_view text);

// Failures of one kind.
struct FailureCount {
  std::size_t count = 0;
  std::string first_message;
};

// Energies from one source, in joules.
struct EnergySummary {
  std::size_t requests = 0;  // That the figures cover.
  Estimate total{};
  std::optional<Estimate> per_request{};
  std::optional<Estimate> per_output_token{};         // Over the whole run.
  std::optional<Estimate> steady_per_output_token{};  // In the steady state.
  std::optional<Estimate> prefill_per_prompt_token{};
  std::optional<Estimate> decode_per_output_token{};
  std::optional<double> prefill_share{};   // Share of the requests' energy.
  std::optional<Estimate> power{};         // In watts, of the whole run.
  std::optional<Estimate> steady_power{};  // In watts.

  // The figure for comparisons: of the steady state where there is one.
  std::optional<Estimate> best_per_output_token() const {
    return steady_per_output_token ? steady_per_output_token : per_output_token;
  }
};

// Energy of the local GPUs, where they were measured.
struct GpuEnergies {
  std::optional<Measurement> whole{};
  std::optional<Measurement> steady{};
  std::optional<Hertz> clock{};  // Mean over time and GPUs, of the steady state if there is one.
};

struct RunSummary {
  Seconds time{0};
  std::size_t sent = 0;
  std::size_t finished = 0;
  bool interrupted = false;
  std::map<std::string, FailureCount> failures{};  // By kind, as in "status 429".
  double prompt_tokens = 0;
  double output_tokens = 0;
  bool tokens_estimated = false;  // The server did not count them in every answer.
  std::size_t peak_in_flight = 0;

  std::optional<SteadyWindow> steady{};
  std::string no_steady_reason{};  // One clause, when there is no window.
  std::size_t saturation = 0;

  double output_tokens_per_second = 0;
  double requests_per_second = 0;
  std::optional<Estimate> steady_output_tokens_per_second{};
  LatencySummary ttft{};
  LatencySummary tpot{};
  LatencySummary latency{};           // From the planned time to the end of the answer.
  std::optional<Estimate> goodput{};  // Requests per second that kept the targets.
  std::optional<Estimate> good_share{};

  std::optional<EnergySummary> gateway{};  // From what the answers said.
  std::optional<EnergySummary> gpus{};     // From the local sensors.
  std::optional<Hertz> clock{};

  // The gateway's figures where there are some, since they belong to these requests alone.
  const EnergySummary* energy() const {
    if (gateway) return &*gateway;
    return gpus ? &*gpus : nullptr;
  }
};

struct SummaryOptions {
  // Sequences that fill the server; absent: the concurrency that was reached.
  std::optional<std::size_t> saturation{};
  LatencyTargets targets{};
};

std::size_t SaturationOf(const LoadRecord& record, const SummaryOptions& options);
RunSummary SummarizeRun(const LoadRecord& record, const SummaryOptions& options,
                        const GpuEnergies& gpus);

}  // namespace zeus::inference
