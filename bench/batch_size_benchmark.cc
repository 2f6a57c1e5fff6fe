// Measures what a decision costs the server: it restores the policy from the job's row, asks it,
// and saves it.
#include <benchmark/benchmark.h>

#include <string>

#include "zeus/base/json.h"
#include "zeus/base/random.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace {

using namespace zeus;

PolicySpec Spec(const std::string& name, std::int64_t arms) {
  PolicySpec spec{.name = name, .seed = 1};
  for (int i = 0; i < arms; ++i) spec.batch_sizes.push_back(8 * (i + 1));
  spec.default_batch_size = spec.batch_sizes[spec.batch_sizes.size() / 2];
  return spec;
}

// Runs a recurrence that converges.
void Recur(BatchSizePolicy& policy, std::int64_t recurrence, Random& random) {
  const Choice choice = policy.Choose({.recurrence = recurrence, .gpu_model = "V100"});
  const int epochs = 8 + choice.batch_size / 16 + static_cast<int>(random.Below(3));
  const Joules epoch_cost(100 + 1000.0 / choice.batch_size);
  policy.Observe({.run = {.recurrence = recurrence,
                          .gpu_model = "V100",
                          .batch_size = choice.batch_size,
                          .role = choice.role},
                  .converged = true,
                  .epochs = epochs,
                  .cost = epochs * epoch_cost,
                  .recurrence_cost = epochs * epoch_cost,
                  .epoch_cost = epoch_cost});
}

std::unique_ptr<BatchSizePolicy> Experienced(const PolicySpec& spec) {
  auto policy = MakePolicy(spec).value();
  Random random(1);
  for (int t = 0; t < 100; ++t) Recur(*policy, t, random);
  return policy;
}

void BM_ChooseAndObserve(benchmark::State& state, const std::string& name) {
  const auto policy = Experienced(Spec(name, state.range(0)));
  Random random(2);
  std::int64_t recurrence = 100;
  for (auto _ : state) Recur(*policy, recurrence++, random);
}

void BM_RestoreChooseSave(benchmark::State& state, const std::string& name) {
  const PolicySpec spec = Spec(name, state.range(0));
  const Json saved = Experienced(spec)->Save();
  for (auto _ : state) {
    const auto policy = RestorePolicy(spec, saved);
    benchmark::DoNotOptimize(policy.value()->Choose({.recurrence = 101, .gpu_model = "V100"}));
    benchmark::DoNotOptimize(policy.value()->Save());
  }
}

// Does the same from and to the text in the database.
void BM_RestoreChooseSaveText(benchmark::State& state, const std::string& name) {
  const PolicySpec spec = Spec(name, state.range(0));
  const std::string saved = Experienced(spec)->Save().dump();
  for (auto _ : state) {
    const auto policy = RestorePolicy(spec, ParseJson(saved).value());
    benchmark::DoNotOptimize(policy.value()->Choose({.recurrence = 101, .gpu_model = "V100"}));
    benchmark::DoNotOptimize(policy.value()->Save().dump());
  }
  state.counters["bytes"] = static_cast<double>(saved.size());
}

BENCHMARK_CAPTURE(BM_ChooseAndObserve, zeus, "zeus")->Arg(10)->Arg(64);
BENCHMARK_CAPTURE(BM_ChooseAndObserve, knowledge_gradient, "knowledge_gradient")->Arg(10)->Arg(64);
BENCHMARK_CAPTURE(BM_RestoreChooseSave, zeus, "zeus")->Arg(10)->Arg(64);
BENCHMARK_CAPTURE(BM_RestoreChooseSave, knowledge_gradient, "knowledge_gradient")->Arg(10)->Arg(64);
BENCHMARK_CAPTURE(BM_RestoreChooseSaveText, zeus, "zeus")->Arg(10)->Arg(64);
BENCHMARK_CAPTURE(BM_RestoreChooseSaveText, knowledge_gradient, "knowledge_gradient")
    ->Arg(10)
    ->Arg(64);

}  // namespace
