#include "zeus/inference/server/engine_metrics.h"

#include <array>
#include <string_view>

namespace zeus::inference {
namespace {

constexpr std::array kFirstTokenBounds = {0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                          0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                          20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
constexpr std::array kNextTokenBounds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                         0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr std::array kWholeBounds = {0.3,  0.5,  0.8,  1.0,  1.5,  2.0,   2.5,   5.0,   10.0, 15.0,
                                     20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0};

constexpr std::string_view kLabel = "model_name";
using enum MetricType;
constexpr MetricDescription kRunning{"vllm:num_requests_running", kGauge, kLabel,
                                     "Number of requests in model execution batches."};
constexpr MetricDescription kWaiting{"vllm:num_requests_waiting", kGauge, kLabel,
                                     "Number of requests waiting to be processed."};
constexpr MetricDescription kCache{"vllm:kv_cache_usage_perc", kGauge, kLabel,
                                   "KV-cache usage. 1 means 100 percent usage."};
constexpr MetricDescription kPromptTokens{"vllm:prompt_tokens_total", kCounter, kLabel,
                                          "Number of prefill tokens processed."};
constexpr MetricDescription kCachedTokens{"vllm:prefix_cache_hits_total", kCounter, kLabel,
                                          "Number of prompt tokens found in the prefix cache."};
constexpr MetricDescription kGenerated{"vllm:generation_tokens_total", kCounter, kLabel,
                                       "Number of generation tokens processed."};
constexpr MetricDescription kPreemptions{"vllm:num_preemptions_total", kCounter, kLabel,
                                         "Cumulative number of preemptions."};
constexpr MetricDescription kEnded{"vllm:request_success_total", kCounter,
                                   "model_name, finished_reason",
                                   "Count of requests that ended, by reason."};
constexpr MetricDescription kFirstToken{"vllm:time_to_first_token_seconds", kHistogram, kLabel,
                                        "Histogram of time to first token in seconds."};
constexpr MetricDescription kNextToken{"vllm:inter_token_latency_seconds", kHistogram, kLabel,
                                       "Histogram of inter-token latency in seconds."};
constexpr MetricDescription kWhole{"vllm:e2e_request_latency_seconds", kHistogram, kLabel,
                                   "Histogram of end to end request latency in seconds."};

}  // namespace

EngineMetrics::EngineMetrics()
    : first_token_(kFirstTokenBounds), next_token_(kNextTokenBounds), whole_(kWholeBounds) {}

void EngineMetrics::CountRequest(unsigned prompt_tokens) { prompt_ += prompt_tokens; }

void EngineMetrics::CountFirstToken(Seconds since_arrival) {
  first_token_.Observe(since_arrival.count());
}

void EngineMetrics::CountNextToken(Seconds since_last) { next_token_.Observe(since_last.count()); }

void EngineMetrics::CountEnd(const sim::RequestTruth& truth, const char* finish_reason) {
  cached_ += truth.cached_tokens;
  preemptions_ += truth.preemptions;
  if (truth.outcome == sim::RequestOutcome::kCancelled) {
    ++aborted_;
    return;
  }
  ++(std::string_view(finish_reason) == "length" ? limited_ : stopped_);
  whole_.Observe((truth.end - truth.arrival).count());
}

std::string EngineMetrics::Text(const std::string& model_name,
                                const sim::InferenceEngine& engine) const {
  const Labels labels = {{kLabel, model_name}};
  const auto ended = [&](const char* reason) {
    return Labels{{kLabel, model_name}, {"finished_reason", reason}};
  };
  const auto number = [](auto count) { return static_cast<double>(count); };
  MetricSet set;
  set.Add(kRunning, labels, engine.running());
  set.Add(kWaiting, labels, number(engine.waiting()));
  set.Add(kCache, labels, number(engine.kv_tokens()) / number(engine.kv_capacity()));
  set.Add(kPromptTokens, labels, number(prompt_));
  set.Add(kCachedTokens, labels, number(cached_));
  set.Add(kGenerated, labels, number(generated_));
  set.Add(kPreemptions, labels, number(preemptions_));
  set.Add(kEnded, ended("stop"), number(stopped_));
  set.Add(kEnded, ended("length"), number(limited_));
  set.Add(kEnded, ended("abort"), number(aborted_));
  set.Add(kFirstToken, labels, first_token_);
  set.Add(kNextToken, labels, next_token_);
  set.Add(kWhole, labels, whole_);
  return set.Text();
}

}  // namespace zeus::inference
