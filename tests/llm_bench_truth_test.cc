// The benchmark of language models against the exact energy of a simulated GPU, on virtual time:
// the load generator drives the simulated engine through its Transport, and the recorder reads the
// simulated sensor, as they do in `zeus llm bench` against `zeus llm sim`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "zeus/base/json.h"
#include "zeus/device/sim/inference/engine.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/inference/benchmark/benchmark.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::inference {
namespace llm_bench_truth_test {

// An engine as a server. Time moves only in WaitUntil().
class EngineServer final : public Transport, private sim::EngineListener {
 public:
  EngineServer(VirtualClock& clock, sim::SimulatedGpu& gpu, EnergyMonitor& monitor)
      : clock_(clock), gpu_(gpu), monitor_(monitor) {
    auto engine = sim::InferenceEngine::Create(*sim::FindLanguageModel("llama-3.1-8b").value(),
                                               sim::AccessTo({&gpu}), {}, *this);
    if (engine.ok()) engine_ = std::move(engine).value();
  }

  void Start(CallId id, const Outgoing& request, Listener& listener) override {
    listener_ = &listener;
    const Json body = ParseJson(request.body).value();
    const auto prompt = body["messages"][0]["content"].get<std::string>();
    const auto words = static_cast<unsigned>(std::count(prompt.begin(), prompt.end(), ' ')) + 1;
    const auto submitted = engine_->Submit(
        Now(), {.prompt_tokens = words, .output_tokens = {body["max_tokens"].get<unsigned>()}});
    ASSERT_TRUE(submitted.ok()) << submitted.error().message;
    calls_[submitted.value()] = id;
  }

  void Abort(CallId /*id*/) override { FAIL() << "no request may take so long"; }

  void WaitUntil(TimePoint deadline) override {
    happened_ = false;
    while (!happened_ && clock_.Now() < deadline) {
      const TimePoint iteration = TimePoint{} + engine_->NextEvent().value();
      clock_.SleepUntil(std::min({deadline, iteration, next_step_}));
      ASSERT_TRUE(engine_->AdvanceTo(Now()).ok());
      if (clock_.Now() >= next_step_) next_step_ = monitor_.Step();
    }
  }

  // Exact energy of the GPU at a moment at which an iteration ended.
  Joules ExactEnergyAt(TimePoint time) const { return exact_.at(time); }
  Joules truth() const { return truth_; }

 private:
  Seconds Now() const { return clock_.Now() - TimePoint{}; }

  void OnIteration(const sim::IterationReport& iteration) override {
    happened_ = true;
    exact_[clock_.Now()] = gpu_.ExactEnergy();
    for (const sim::OutputToken& token : iteration.tokens) {
      const CallId id = calls_.at(token.request);
      if (token.number == 1)
        listener_->OnHead(id, {.status = 200, .content_type = "text/event-stream"});
      listener_->OnBody(id, "data: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n");
    }
  }

  void OnEnd(const sim::RequestTruth& truth) override {
    truth_ += truth.energy();
    const CallId id = calls_.at(truth.id);
    listener_->OnBody(id, fmt::format("data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{},"
                                      "\"completion_tokens\":{}}}}}\n\ndata: [DONE]\n\n",
                                      truth.prompt_tokens, truth.output_tokens));
    listener_->OnEnd(id);
  }

  VirtualClock& clock_;
  sim::SimulatedGpu& gpu_;
  EnergyMonitor& monitor_;
  std::unique_ptr<sim::InferenceEngine> engine_;
  Listener* listener_ = nullptr;
  std::map<sim::RequestId, CallId> calls_;
  std::map<TimePoint, Joules> exact_;
  Joules truth_{0};
  TimePoint next_step_{};
  bool happened_ = false;
};

struct Load {
  const char* name;
  Arrivals arrivals;
  std::size_t requests;
};

// One load on a board of its own, and what really happened.
struct Outcome {
  BenchmarkRun run;
  double truth = 0;  // Joules per token of the steady state.
  Joules exact{0};   // The energy of the GPU in the whole run.
  Joules requests{0};
};

// `gain` is what a calibration with an external meter found; nullopt without one.
Outcome RunLoad(const Load& load, std::optional<double> gain) {
  VirtualClock clock;
  Node node;
  auto owned = std::make_unique<sim::SimulatedGpu>(clock, *sim::FindGpuModel("H100").value(),
                                                   sim::SimulatedGpu::Options{.seed = 7});
  sim::SimulatedGpu& gpu = *owned;
  node.gpus.push_back(std::move(owned));
  NodeMonitorOptions wanted{.cpus = false, .rails = false, .thread = false, .share = false};
  wanted.calibration = [gain](const GpuIdentity& identity) -> std::optional<SensorProfile> {
    if (!gain) return std::nullopt;
    SensorProfile profile = PriorProfile(identity);
    profile.gain = *gain;
    profile.gain_sigma = 0.005;  // A good meter leaves this much.
    return profile;
  };
  auto opened = NodeMonitor::Open(clock, std::move(node), std::move(wanted));
  EnergyMonitor& monitor = opened.value()->monitor();
  EngineServer server(clock, gpu, monitor);
  GpuMeter meter(monitor);

  const Joules before = gpu.ExactEnergy();
  Outcome outcome;
  outcome.run =
      RunBenchmark({.clock = clock, .transport = server, .meter = &meter},
                   {.workload = {.arrivals = load.arrivals,
                                 .requests = load.requests,
                                 .prompt_tokens = TokenCount::Parse("lognormal:300,0.6").value(),
                                 .output_tokens = TokenCount::Parse("exponential:200").value()},
                    .load = {.model = "llama-3.1-8b"}},
                   [](const LoadProgress&) { return true; });
  outcome.exact = gpu.ExactEnergy() - before;
  outcome.requests = server.truth();
  if (const auto& steady = outcome.run.summary.steady) {
    double tokens = 0;
    for (const RequestRecord& request : outcome.run.record.requests)
      for (const TokenArrival& arrival : request.arrivals)
        if (steady->Contains(arrival.at)) tokens += arrival.tokens;
    outcome.truth =
        (server.ExactEnergyAt(steady->end) - server.ExactEnergyAt(steady->begin)).value() / tokens;
  }
  return outcome;
}

void PrintError(const char* name, const char* board, const Outcome& outcome) {
  const Estimate measured = *outcome.run.summary.gpus->steady_per_output_token;
  fmt::print("{}, {}: {:.4f} J per token, truth {:.4f}: {:+.2f} %, stated ± {:.2f} %, {:.1f} s\n",
             name, board, measured.value, outcome.truth, 100 * (measured.value / outcome.truth - 1),
             100 * measured.sigma / measured.value, outcome.run.summary.steady->time().count());
}

class LlmBenchTruthTest : public ::testing::TestWithParam<Load> {};

TEST_P(LlmBenchTruthTest, SteadyStateEnergyPerTokenIsWithinItsSigmaWithoutCalibration) {
  const Outcome outcome = RunLoad(GetParam(), std::nullopt);
  const RunSummary& summary = outcome.run.summary;
  ASSERT_TRUE(summary.steady) << summary.no_steady_reason;
  PrintError(GetParam().name, "board not calibrated", outcome);
  EXPECT_EQ(summary.finished, GetParam().requests);
  const Estimate measured = *summary.gpus->steady_per_output_token;
  EXPECT_LT(std::abs(measured.value - outcome.truth), 2 * measured.sigma);
  // The whole run: all joules of the GPU, idle ones included.
  EXPECT_GT(outcome.exact, outcome.requests);
  EXPECT_NEAR(summary.gpus->total.value / outcome.exact.value(), 1, 0.03);
  EXPECT_TRUE(summary.clock);
}

TEST_P(LlmBenchTruthTest, SteadyStateEnergyPerTokenIsWithinOnePerCentOnACalibratedBoard) {
  // Another load beside a meter tells the board's gain, which is 1.3 % off.
  const Outcome reference = RunLoad({"reference", ClosedLoop{32}, 300}, std::nullopt);
  const double gain = reference.run.summary.gpus->total.value / reference.exact.value();
  const Outcome outcome = RunLoad(GetParam(), gain);
  ASSERT_TRUE(outcome.run.summary.steady);
  PrintError(GetParam().name, "board calibrated", outcome);
  EXPECT_NEAR(outcome.run.summary.gpus->steady_per_output_token->value / outcome.truth, 1, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Loads, LlmBenchTruthTest,
                         ::testing::Values(Load{"eight_at_once", ClosedLoop{8}, 200},
                                           Load{"sixty_four_at_once", ClosedLoop{64}, 600},
                                           Load{"five_per_second", PoissonArrivals{5}, 300}),
                         [](const auto& load) { return std::string(load.param.name); });

}  // namespace llm_bench_truth_test
}  // namespace zeus::inference
