// Prints how the simulated inference server agrees with recorded serving points, also with those of
// models that its constants were not fitted to, and how exactly the energies of its requests add
// up:  ./dev bench llm-sim
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/testing/places.h"
#include "zeus/device/sim/inference/engine.h"
#include "zeus/device/sim/inference/model.h"
#include "zeus/device/sim/inference/physics.h"
#include "zeus/device/sim/testing/serving_points.h"

namespace zeus::sim {
namespace {

using testing::Compare;
using testing::ErrorSummary;
using testing::ParseServingPoints;
using testing::ParseTrace;
using testing::PointError;
using testing::ServingLaw;
using testing::ServingPoint;
using testing::Summarize;
using testing::TraceRequest;

void PrintSeries(const std::vector<ServingPoint>& points) {
  std::map<std::string, std::vector<PointError>> series;
  for (const ServingPoint& point : points)
    series[fmt::format("{} {} on {}", point.model->name, point.task, point.gpus)].push_back(
        Compare(point));
  fmt::print("{:44} {:>6} {:>22} {:>22}\n", "series", "points", "time: median, worst",
             "energy: median, worst");
  for (const auto& [name, errors] : series) {
    const ErrorSummary time = Summarize(errors, &PointError::time);
    const ErrorSummary energy = Summarize(errors, &PointError::energy);
    fmt::print("{:44} {:>6} {:>12.1f} %{:>6.1f} % {:>12.1f} %{:>6.1f} %\n", name, errors.size(),
               100 * time.median, 100 * time.worst, 100 * energy.median, 100 * energy.worst);
  }
}

void PrintSummary(std::string_view name, const std::vector<PointError>& errors) {
  const ErrorSummary time = Summarize(errors, &PointError::time);
  const ErrorSummary energy = Summarize(errors, &PointError::energy);
  fmt::print(
      "{:36} {:>4} points: time {:.1f} % (95 %: {:.1f} %), energy {:.1f} % (95 %: {:.1f} %)\n",
      name, errors.size(), 100 * time.median, 100 * time.percentile_95, 100 * energy.median,
      100 * energy.percentile_95);
}

bool IsPackedMixture(const ServingPoint& point) {
  return point.model->mixture() && point.model->packed();
}

bool IsPlainMixture(const ServingPoint& point) {
  return point.model->mixture() && !point.model->packed();
}

void PrintPhysics(const std::vector<ServingPoint>& points) {
  PrintSeries(points);
  const auto select = [&](auto wanted) {
    std::vector<PointError> errors;
    for (const ServingPoint& point : points)
      if (wanted(point)) errors.push_back(Compare(point));
    return errors;
  };
  fmt::print("\n");
  PrintSummary("dense models", select([](const auto& point) { return !point.model->mixture(); }));
  PrintSummary("mixtures of experts in 16 bits", select(IsPlainMixture));
  PrintSummary("mixtures of experts, packed", select(IsPackedMixture));
}

// The constants of mixtures and packed weights. They are fitted again without one model after the
// other, which tells what the law is worth for a model that it has not seen; the constants of dense
// models stay.
using MixtureConstants = std::array<double, 7>;

// Not those of the product: a search that starts there would have seen all models.
constexpr MixtureConstants kStartOfSearch = {20e-6, 20e-6, 50e-6, 20e-6, 0.1e-6, 200e-6, 50.0};

ServingLaw LawWith(const MixtureConstants& values, const GpuModel& gpu) {
  ServingLaw law{.constants = ConstantsFor(gpu)};
  law.overheads.sort_tokens = Seconds(values[0]);
  law.overheads.per_doubling = Seconds(values[1]);
  law.overheads.shared_expert = Seconds(values[2]);
  law.overheads.packed = Seconds(values[3]);
  law.constants.per_routed = Seconds(values[4]);
  law.constants.per_routed_energy = Joules(values[5]);
  law.constants.small_kernels = Watts(values[6]);
  return law;
}

double SumOfErrors(const MixtureConstants& values, const std::vector<ServingPoint>& points) {
  const ServingLaw law = LawWith(values, *points.front().gpu);
  double sum = 0;
  for (const ServingPoint& point : points) {
    const PointError error = Compare(point, law);
    sum += std::abs(std::log1p(error.time)) + std::abs(std::log1p(error.energy));
  }
  return sum;
}

// Coordinate descent with factors that shrink: seven constants are few.
MixtureConstants FitMixtures(const std::vector<ServingPoint>& points) {
  MixtureConstants best = kStartOfSearch;
  double least = SumOfErrors(best, points);
  for (const double factor : {2.0, 1.3, 1.1, 1.03}) {
    bool improved = true;
    while (improved) {
      improved = false;
      for (std::size_t i = 0; i < best.size(); ++i)
        for (const double by : {factor, 1.0 / factor}) {
          MixtureConstants candidate = best;
          candidate[i] *= by;
          const double sum = SumOfErrors(candidate, points);
          if (sum > least * (1.0 - 1e-4)) continue;
          best = candidate;
          least = sum;
          improved = true;
        }
    }
  }
  return best;
}

void PrintHoldOut(const std::vector<ServingPoint>& points) {
  std::map<std::string_view, std::vector<ServingPoint>> models;
  for (const ServingPoint& point : points)
    if (point.model->mixture() || point.model->packed()) models[point.model->name].push_back(point);
  std::vector<PointError> plain;
  std::vector<PointError> packed;
  fmt::print("\nConstants of mixtures and packing fitted without the model:\n");
  for (const auto& [name, left_out] : models) {
    std::vector<ServingPoint> others;
    for (const auto& [other, seen] : models)
      if (other != name) others.insert(others.end(), seen.begin(), seen.end());
    const ServingLaw law = LawWith(FitMixtures(others), *left_out.front().gpu);
    std::vector<PointError> errors;
    for (const ServingPoint& point : left_out) errors.push_back(Compare(point, law));
    PrintSummary(name, errors);
    if (!left_out.front().model->mixture()) continue;
    auto& all = left_out.front().model->packed() ? packed : plain;
    all.insert(all.end(), errors.begin(), errors.end());
  }
  PrintSummary("left out: mixtures in 16 bits", plain);
  PrintSummary("left out: mixtures, packed", packed);
}

class Sums final : public EngineListener {
 public:
  void OnIteration(const IterationReport&) override { ++iterations; }
  void OnEnd(const RequestTruth& truth) override {
    energy.Add(truth.energy());
    ++requests;
  }
  EnergySum energy;
  std::size_t iterations = 0;
  std::size_t requests = 0;
};

// Serves a recorded trace and compares the energies of its requests with that of the GPU.
Status ServeTrace(const std::filesystem::path& file, double speed) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file, std::size_t{1} << 26));
  ZEUS_TRY(const std::vector<TraceRequest> trace, ParseTrace(text));
  VirtualClock clock;
  SimulatedGpu gpu(clock, *FindGpuModel("H100").value());
  Sums sums;
  ZEUS_TRY(const auto engine, InferenceEngine::Create(*FindLanguageModel("llama-3.1-8b").value(),
                                                      AccessTo({&gpu}), {}, sums));
  const SystemClock wall;
  const TimePoint begin = wall.Now();
  for (const TraceRequest& request : trace) {
    const Seconds arrival = request.arrival / speed;
    clock.SleepUntil(TimePoint{} + arrival);
    ZEUS_TRY(const RequestId id,
             engine->Submit(arrival, {.prompt_tokens = request.prompt_tokens,
                                      .output_tokens = {request.output_tokens}}));
    (void)id;
  }
  while (engine->running() + engine->waiting() > 0) {
    clock.Advance(Seconds(10));
    ZEUS_RETURN_IF_ERROR(engine->AdvanceTo(clock.Now() - TimePoint{}));
  }
  const Seconds took = wall.Now() - begin;
  const Seconds end = clock.Now() - TimePoint{};
  ZEUS_TRY(const InferenceEngine::Accounts accounts, engine->ReadAccounts(end));
  const double total = (sums.energy.Total() + accounts.idle).value();
  const double exact = gpu.ExactEnergy().value();
  fmt::print(
      "{} x{:g}: {} requests, {} iterations, {:.0f} s in {:.2f} s: requests + idle differ from the "
      "GPU by {:.1e} of its {:.0f} J\n",
      file.stem().string(), speed, sums.requests, sums.iterations, end.count(), took.count(),
      std::abs(total - exact) / exact, exact);
  return Ok();
}

Status Run() {
  const std::filesystem::path data = zeus::testing::RecordedData("ZEUS_LLM_DIR", "llm");
  ZEUS_TRY(const std::string text, ReadSmallFile(data / "serving_points.csv", 1 << 20));
  ZEUS_TRY(const std::vector<ServingPoint> points, ParseServingPoints(text, "H100"));
  PrintPhysics(points);
  PrintHoldOut(points);
  fmt::print("\n");
  for (const double speed : {0.2, 1.0, 3.0})
    ZEUS_RETURN_IF_ERROR(ServeTrace(data / "azure_llm_2023_conversation.csv", speed));
  for (const double speed : {1.0, 3.0})
    ZEUS_RETURN_IF_ERROR(ServeTrace(data / "azure_llm_2023_code.csv", speed));
  return Ok();
}

}  // namespace
}  // namespace zeus::sim

int main() {
  const auto done = zeus::sim::Run();
  if (done.ok()) return 0;
  fmt::print(stderr, "llm_sim: {}\n", done.error().message);
  return 1;
}
