#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/inference/model.h"
#include "zeus/device/sim/inference/physics.h"

// How well the physics of inference agrees with recorded serving points, which do not ship with the
// product. Used by its test and by the benchmark that prints the table in docs/llm.md.
namespace zeus::sim::testing {

// One row of serving_points.csv: a server in steady state.
struct ServingPoint {
  const LanguageModel* model;
  std::string task;
  const GpuModel* gpu;
  unsigned gpus;
  double batch;          // Mean number of sequences that run.
  double output_tokens;  // Mean per request.
  Seconds time;          // That one iteration takes.
  Joules energy;         // That one iteration takes on all GPUs together.
};

// The points of catalogued models on that GPU; those of other models are left out.
Result<std::vector<ServingPoint>> ParseServingPoints(std::string_view csv, std::string_view gpu);

// The constants that predictions are made with.
struct ServingLaw {
  InferenceConstants constants;
  LayerOverheads overheads = {};
};

// Relative errors of the prediction, with sign.
struct PointError {
  double time;
  double energy;
};
PointError Compare(const ServingPoint& point, const ServingLaw& law);
inline PointError Compare(const ServingPoint& point) {
  return Compare(point, {.constants = ConstantsFor(*point.gpu)});
}

// Percentiles of the errors without their signs.
struct ErrorSummary {
  double median;
  double percentile_95;
  double worst;
};
ErrorSummary Summarize(const std::vector<PointError>& errors, double PointError::*part);

// A request of a recorded trace of arrivals.
struct TraceRequest {
  Seconds arrival;  // Since the first one.
  unsigned prompt_tokens;
  unsigned output_tokens;
};

// "TIMESTAMP,ContextTokens,GeneratedTokens" with times of one or two days, sorted.
Result<std::vector<TraceRequest>> ParseTrace(std::string_view csv);

}  // namespace zeus::sim::testing
