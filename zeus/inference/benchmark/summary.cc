#include "zeus/inference/benchmark/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "zeus/base/statistics.h"
#include "zeus/base/text.h"
#include "zeus/inference/benchmark/workload.h"

namespace zeus::inference {
namespace {

// Slices of the steady state whose scatter gives the uncertainty of a rate.
constexpr std::size_t kRateSlices = 10;

double TokensIn(const RequestRecord& request, const SteadyWindow& window) {
  double tokens = 0;
  for (const TokenArrival& arrival : request.arrivals)
    if (window.Contains(arrival.at)) tokens += arrival.tokens;
  return tokens;
}

double TokensIn(const LoadRecord& record, const SteadyWindow& window) {
  double tokens = 0;
  for (const RequestRecord& request : record.requests) tokens += TokensIn(request, window);
  return tokens;
}

Estimate DividedBy(Estimate energy, double by) { return {energy.value / by, energy.sigma / by}; }

Estimate SteadyRate(const LoadRecord& record, const SteadyWindow& window) {
  std::array<double, kRateSlices> slices{};
  const double length = window.time().count() / static_cast<double>(kRateSlices);
  for (const RequestRecord& request : record.requests) {
    for (const TokenArrival& arrival : request.arrivals) {
      if (!window.Contains(arrival.at)) continue;
      const double slice = (arrival.at - window.begin).count() / length;
      slices.at(std::min(kRateSlices - 1, static_cast<std::size_t>(slice))) +=
          arrival.tokens / length;
    }
  }
  const SampleSummary scatter = Summarize(slices);
  return {scatter.mean, scatter.StandardError()};
}

std::string FailureKey(const CallFailure& failure) {
  if (failure.kind == FailureKind::kStatus) return fmt::format("status {}", failure.status);
  return FailureName(failure.kind);
}

// Sums over requests. Apart from the error that they share, the gain of the sensor, their errors
// count as independent: those of one sensor interval are in truth opposed, since the interval's
// energy is known better than its parts.
struct GatewaySums {
  std::size_t requests = 0;
  double least_error = std::numeric_limits<double>::infinity();  // The smallest relative sigma.
  double energy = 0;
  double variance = 0;
  double output_tokens = 0;
  bool phases = true;
  double prefill = 0;
  double decode = 0;
  double prompt_tokens = 0;
  double steady_energy = 0;
  double steady_variance = 0;
  double steady_tokens = 0;
};

// The part of a request's energy that belongs to a window: its prompt where its first token came,
// and its decoding by the tokens that came in the window.
double EnergyIn(const RequestRecord& request, const SteadyWindow& window) {
  const RequestEnergy& energy = *request.energy;
  const double share =
      request.output_tokens > 0 ? TokensIn(request, window) / request.output_tokens : 0;
  if (!energy.prefill || !energy.decode) return energy.energy.value() * share;
  const bool begun = request.first_token() && window.Contains(*request.first_token());
  return (begun ? energy.prefill->value() : 0) + energy.decode->value() * share;
}

void Add(GatewaySums& sums, const RequestRecord& request,
         const std::optional<SteadyWindow>& steady) {
  const RequestEnergy& energy = *request.energy;
  ++sums.requests;
  sums.energy += energy.energy.value();
  sums.variance += energy.sigma.value() * energy.sigma.value();
  if (energy.energy.value() > 0)
    sums.least_error = std::min(sums.least_error, energy.sigma / energy.energy);
  sums.output_tokens += request.output_tokens;
  sums.prompt_tokens += request.prompt_tokens;
  sums.phases = sums.phases && energy.prefill && energy.decode;
  if (sums.phases) {
    sums.prefill += energy.prefill->value();
    sums.decode += energy.decode->value();
  }
  if (!steady) return;
  const double part = EnergyIn(request, *steady);
  sums.steady_energy += part;
  sums.steady_tokens += TokensIn(request, *steady);
  const double whole = energy.energy.value();
  const double sigma = whole > 0 ? energy.sigma.value() * part / whole : 0;
  sums.steady_variance += sigma * sigma;
}

// The relative error that all requests share. It cannot exceed the error of any of them, nor that
// of the sensor where it is known here.
double SharedError(const GatewaySums& sums, const std::optional<Measurement>& gpus) {
  double error = std::isfinite(sums.least_error) ? sums.least_error : 0;
  if (gpus) {
    const Measurement::Total total = gpus->Sum();
    if (total.energy.value() > 0) error = std::min(error, total.shared_sigma / total.energy);
  }
  return error;
}

Estimate WithSharedError(double value, double variance, double shared) {
  return {value, std::sqrt(variance + value * value * shared * shared)};
}

std::optional<EnergySummary> SummarizeGateway(const LoadRecord& record,
                                              const std::optional<SteadyWindow>& steady,
                                              const std::optional<Measurement>& gpus) {
  GatewaySums sums;
  for (const RequestRecord& request : record.requests)
    if (request.energy) Add(sums, request, steady);
  if (sums.requests == 0) return std::nullopt;
  EnergySummary summary{.requests = sums.requests};
  const double shared = SharedError(sums, gpus);
  summary.total = WithSharedError(sums.energy, sums.variance, shared);
  const double relative = sums.energy > 0 ? summary.total.sigma / sums.energy : 0;
  summary.per_request = DividedBy(summary.total, static_cast<double>(sums.requests));
  if (sums.output_tokens > 0)
    summary.per_output_token = DividedBy(summary.total, sums.output_tokens);
  if (steady && sums.steady_tokens > 0) {
    const Estimate energy = WithSharedError(sums.steady_energy, sums.steady_variance, shared);
    summary.steady_per_output_token = DividedBy(energy, sums.steady_tokens);
    summary.steady_power = DividedBy(energy, steady->time().count());
  }
  if (sums.phases && sums.energy > 0) {
    summary.prefill_share = sums.prefill / sums.energy;
    if (sums.prompt_tokens > 0)
      summary.prefill_per_prompt_token =
          DividedBy({sums.prefill, relative * sums.prefill}, sums.prompt_tokens);
    if (sums.output_tokens > 0)
      summary.decode_per_output_token =
          DividedBy({sums.decode, relative * sums.decode}, sums.output_tokens);
  }
  if (const double time = (record.end - record.begin).count(); time > 0)
    summary.power = DividedBy(summary.total, time);
  return summary;
}

std::optional<Estimate> SumOf(const std::optional<Measurement>& measurement) {
  if (!measurement) return std::nullopt;
  const Measurement::Total total = measurement->Sum();
  if (total.contains.empty()) return std::nullopt;
  return Estimate{total.energy.value(), total.sigma.value()};
}

std::optional<EnergySummary> SummarizeGpus(const LoadRecord& record, const RunSummary& run,
                                           const GpuEnergies& gpus) {
  const auto whole = SumOf(gpus.whole);
  if (!whole) return std::nullopt;
  EnergySummary summary{.requests = run.finished};
  summary.total = *whole;
  if (run.finished > 0) summary.per_request = DividedBy(*whole, static_cast<double>(run.finished));
  if (run.output_tokens > 0) summary.per_output_token = DividedBy(*whole, run.output_tokens);
  if (run.time.count() > 0) summary.power = DividedBy(*whole, run.time.count());
  if (const auto steady = SumOf(gpus.steady); steady && run.steady) {
    const double tokens = TokensIn(record, *run.steady);
    if (tokens > 0) summary.steady_per_output_token = DividedBy(*steady, tokens);
    summary.steady_power = DividedBy(*steady, run.steady->time().count());
  }
  return summary;
}

bool IsGood(const RequestRecord& request, const LatencyTargets& targets) {
  if (!request.finished) return false;
  const auto ttft = request.TimeToFirstToken();
  const auto tpot = request.TimePerOutputToken();
  if (targets.ttft && (!ttft || *ttft > *targets.ttft)) return false;
  return !targets.tpot || !tpot || *tpot <= *targets.tpot;  // One token alone has no TPOT.
}

void AddGoodput(RunSummary& run, const LoadRecord& record, const LatencyTargets& targets) {
  if ((!targets.ttft && !targets.tpot) || run.sent == 0 || run.time.count() <= 0) return;
  const auto good = static_cast<double>(std::ranges::count_if(
      record.requests, [&](const RequestRecord& request) { return IsGood(request, targets); }));
  const auto sent = static_cast<double>(run.sent);
  const double share = good / sent;
  const double sigma = std::sqrt(share * (1 - share) / sent);
  run.good_share = Estimate{share, sigma};
  run.goodput = Estimate{good / run.time.count(), sigma * sent / run.time.count()};
}

void AddRequests(RunSummary& run, const LoadRecord& record) {
  std::vector<double> ttft;
  std::vector<double> tpot;
  std::vector<double> latency;
  for (const RequestRecord& request : record.requests) {
    run.output_tokens += request.output_tokens;
    run.prompt_tokens += request.prompt_tokens;
    if (request.failure) {
      FailureCount& count = run.failures[FailureKey(*request.failure)];
      if (count.count++ == 0) count.first_message = request.failure->message;
    }
    if (!request.finished) continue;
    ++run.finished;
    run.tokens_estimated = run.tokens_estimated || request.tokens_estimated;
    if (const auto time = request.TimeToFirstToken()) ttft.push_back(time->count());
    if (const auto time = request.TimePerOutputToken()) tpot.push_back(time->count());
    latency.push_back((request.ended - request.planned).count());
  }
  run.ttft = SummarizeLatency(std::move(ttft));
  run.tpot = SummarizeLatency(std::move(tpot));
  run.latency = SummarizeLatency(std::move(latency));
}

}  // namespace

Result<SteadyWindow> FindSteadyWindow(const LoadRecord& record, std::size_t saturation) {
  std::vector<TimePoint> first_tokens;
  std::vector<TimePoint> ends;
  for (const RequestRecord& request : record.requests) {
    if (const auto first = request.first_token()) first_tokens.push_back(*first);
    // Requests that an interruption ended say nothing about the server.
    if (!request.failure || request.failure->kind != FailureKind::kInterrupted)
      ends.push_back(request.ended);
  }
  const std::size_t requests = record.requests.size();
  const auto too_short = [&] {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} requests with {} at once are too few for a steady state: send {} "
                             "or more",
                             requests, saturation, 4 * saturation + 2)};
  };
  if (saturation == 0 || first_tokens.size() < saturation || requests < saturation + 2)
    return too_short();
  const std::size_t last = std::min(requests - saturation - 1, ends.size());
  if (last == 0) return too_short();
  std::ranges::sort(first_tokens);
  std::ranges::sort(ends);
  const SteadyWindow window{first_tokens[saturation - 1], ends[last - 1]};
  if (window.end <= window.begin) return too_short();
  return window;
}

Estimate Percentile(std::span<const double> sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  const auto at = [&](double rank) {
    rank = std::clamp(rank, 0.0, last);
    const auto below = static_cast<std::size_t>(rank);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
  };
  const double rank = share * last;
  const double spread = std::sqrt(static_cast<double>(sorted.size()) * share * (1 - share));
  return {at(rank), (at(rank + spread) - at(rank - spread)) / 2};
}

LatencySummary SummarizeLatency(std::vector<double> seconds) {
  LatencySummary summary{.count = seconds.size()};
  if (seconds.empty()) return summary;
  std::ranges::sort(seconds);
  const SampleSummary sample = Summarize(seconds);
  summary.mean = {sample.mean, sample.StandardError()};
  summary.p50 = Percentile(seconds, 0.5);
  summary.p90 = Percentile(seconds, 0.9);
  summary.p99 = Percentile(seconds, 0.99);
  return summary;
}

Result<LatencyTargets> ParseLatencyTargets(std::string_view text) {
  LatencyTargets targets;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = Trim(part.substr(0, equals));
    if (equals == part.size() || (name != "ttft" && name != "tpot"))
      return InvalidArgument(
          fmt::format("not a latency target: {}; write ttft=1s,tpot=50ms", Quote(part)));
    ZEUS_TRY((name == "ttft" ? targets.ttft : targets.tpot), ParseTime(part.substr(equals + 1)));
  }
  if (!targets.ttft && !targets.tpot)
    return InvalidArgument("no latency target: write ttft=1s,tpot=50ms");
  return targets;
}

std::size_t SaturationOf(const LoadRecord& record, const SummaryOptions& options) {
  return std::max<std::size_t>(1, options.saturation.value_or(record.peak_in_flight));
}

RunSummary SummarizeRun(const LoadRecord& record, const SummaryOptions& options,
                        const GpuEnergies& gpus) {
  RunSummary run{.time = record.end - record.begin,
                 .sent = record.requests.size(),
                 .interrupted = record.interrupted,
                 .peak_in_flight = record.peak_in_flight,
                 .saturation = SaturationOf(record, options),
                 .clock = gpus.clock};
  AddRequests(run, record);
  if (auto steady = FindSteadyWindow(record, run.saturation); steady.ok())
    run.steady = steady.value();
  else
    run.no_steady_reason = steady.error().message;
  if (run.time.count() > 0) {
    run.output_tokens_per_second = run.output_tokens / run.time.count();
    run.requests_per_second = static_cast<double>(run.finished) / run.time.count();
  }
  if (run.steady) run.steady_output_tokens_per_second = SteadyRate(record, *run.steady);
  AddGoodput(run, record, options.targets);
  run.gateway = SummarizeGateway(record, run.steady, gpus.whole);
  run.gpus = SummarizeGpus(record, run, gpus);
  return run;
}

}  // namespace zeus::inference
