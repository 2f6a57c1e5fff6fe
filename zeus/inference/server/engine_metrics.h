#pragma once

#include <string>

#include "zeus/base/units.h"
#include "zeus/device/sim/inference/engine.h"
#include "zeus/metrics/metric.h"

namespace zeus::inference {

// Figures of an engine under the names that vLLM gives them, so that dashboards and gateways for
// vLLM read them. One owner.
class EngineMetrics {
 public:
  EngineMetrics();

  void CountRequest(unsigned prompt_tokens);
  void CountFirstToken(Seconds since_arrival);
  void CountNextToken(Seconds since_last);
  void CountTokens(unsigned tokens) { generated_ += tokens; }
  void CountEnd(const sim::RequestTruth& truth, const char* finish_reason);

  std::string Text(const std::string& model_name, const sim::InferenceEngine& engine) const;

 private:
  unsigned long long prompt_ = 0;
  unsigned long long cached_ = 0;
  unsigned long long generated_ = 0;
  unsigned long long preemptions_ = 0;
  unsigned long long stopped_ = 0;
  unsigned long long limited_ = 0;
  unsigned long long aborted_ = 0;
  Histogram first_token_;
  Histogram next_token_;
  Histogram whole_;
};

}  // namespace zeus::inference
