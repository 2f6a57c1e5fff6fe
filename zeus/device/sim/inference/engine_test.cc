#include "zeus/device/sim/inference/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::sim {
namespace {

using namespace zeus::literals;
using namespace std::chrono_literals;

const GpuModel& H100() { return *FindGpuModel("H100").value(); }
const LanguageModel& Llama8B() { return *FindLanguageModel("llama-3.1-8b").value(); }

class Recorder final : public EngineListener {
 public:
  void OnIteration(const IterationReport& iteration) override {
    iterations.push_back(iteration);
    iterations.back().tokens = {};
    for (const OutputToken& token : iteration.tokens)
      arrivals[token.request].push_back(iteration.end);
  }
  void OnEnd(const RequestTruth& truth) override { truths.emplace(truth.id, truth); }

  std::vector<IterationReport> iterations;
  std::map<RequestId, std::vector<Seconds>> arrivals;
  std::map<RequestId, RequestTruth> truths;
};

class EngineTest : public ::testing::Test {
 protected:
  void Start(const EngineOptions& options = {}, const LanguageModel& model = Llama8B(),
             unsigned gpus = 1) {
    std::vector<SimulatedGpu*> group;
    for (unsigned i = 0; i < gpus; ++i) {
      gpus_.push_back(std::make_unique<SimulatedGpu>(clock_, H100(),
                                                     SimulatedGpu::Options{.seed = 7, .index = i}));
      group.push_back(gpus_.back().get());
    }
    auto engine = InferenceEngine::Create(model, AccessTo(group), options, recorder_);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    engine_ = std::move(engine).value();
  }

  Seconds Now() const { return clock_.Now() - TimePoint{}; }

  RequestId Submit(unsigned prompt, std::vector<unsigned> outputs) {
    const auto id =
        engine_->Submit(Now(), {.prompt_tokens = prompt, .output_tokens = std::move(outputs)});
    EXPECT_TRUE(id.ok()) << id.error().message;
    return id.ok() ? id.value() : 0;
  }

  void RunUntil(Seconds time) {
    while (true) {
      const Seconds next = engine_->NextEvent().value();
      if (next > time) break;
      clock_.SleepUntil(TimePoint{} + next);
      ASSERT_TRUE(engine_->AdvanceTo(next).ok());
    }
    clock_.SleepUntil(TimePoint{} + time);
    ASSERT_TRUE(engine_->AdvanceTo(time).ok());
  }

  void RunUntilEmpty() {
    while (engine_->running() + engine_->waiting() > 0) RunUntil(engine_->NextEvent().value());
  }

  Joules ExactEnergy() {
    Joules energy(0);
    for (const auto& gpu : gpus_) energy += gpu->ExactEnergy();
    return energy;
  }

  VirtualClock clock_;
  std::vector<std::unique_ptr<SimulatedGpu>> gpus_;
  Recorder recorder_;
  std::unique_ptr<InferenceEngine> engine_;
};

TEST_F(EngineTest, FirstTokenEndsThePromptAndEveryIterationGivesOneMore) {
  Start();
  const RequestId id = Submit(100, {5});
  RunUntilEmpty();
  ASSERT_EQ(recorder_.arrivals[id].size(), 5U);
  ASSERT_EQ(recorder_.iterations.size(), 5U);
  EXPECT_EQ(recorder_.iterations[0].prompt_tokens, 100U);
  EXPECT_EQ(recorder_.iterations[1].decodes, 1U);
  EXPECT_EQ(recorder_.iterations[1].context, 101.0);
  const RequestTruth& truth = recorder_.truths.at(id);
  EXPECT_EQ(truth.first_token, recorder_.arrivals[id].front());
  EXPECT_EQ(truth.end, recorder_.arrivals[id].back());
  EXPECT_EQ(truth.output_tokens, 5U);
  // Iterations follow one another without a gap.
  for (std::size_t i = 1; i < recorder_.iterations.size(); ++i)
    EXPECT_EQ(recorder_.iterations[i].start, recorder_.iterations[i - 1].end);
}

TEST_F(EngineTest, GpuDrawsThePowerOfTheLawAndReportsItsClock) {
  Start();
  Submit(10, {1000});
  RunUntil(1s);
  const IterationParts parts(Llama8B(), 1);
  const IterationReport& last = recorder_.iterations.back();
  const IterationCost cost = IterationLaw(H100(), H100().graphics_clock.max)
                                 .Cost(parts.Fixed() + parts.Decode(1, last.context));
  EXPECT_NEAR((last.end - last.start) / cost.time, 1.0, 1e-9);
  // A board that has not yet warmed up leaks a little less.
  EXPECT_NEAR(gpus_[0]->ExactPower() / cost.power(), 1.0, 0.01);
  EXPECT_EQ(gpus_[0]->CurrentClock(ClockDomain::kGraphics).value(), H100().graphics_clock.max);
  EXPECT_GT(gpus_[0]->CurrentMemoryUse().value().used_bytes, 70'000'000'000U);
}

TEST_F(EngineTest, LockedClockAndPowerLimitActOnIterations) {
  Start();
  for (int i = 0; i < 64; ++i) Submit(500, {2000});
  RunUntil(5s);
  const IterationReport fast = recorder_.iterations.back();
  ASSERT_TRUE(gpus_[0]->LockClockWithoutJournal(ClockDomain::kGraphics, {990_MHz, 990_MHz}).ok());
  RunUntil(6s);
  const IterationReport slow = recorder_.iterations.back();
  EXPECT_EQ(slow.clock, 990_MHz);
  EXPECT_GT(slow.end - slow.start, fast.end - fast.start);
  EXPECT_LT(slow.energy, fast.energy);

  ASSERT_TRUE(gpus_[0]->ResetClock(ClockDomain::kGraphics).ok());
  ASSERT_TRUE(gpus_[0]->SetPowerLimitWithoutJournal(400_W).ok());
  RunUntil(7s);
  const IterationReport limited = recorder_.iterations.back();
  EXPECT_LT(limited.clock, H100().graphics_clock.max);
  EXPECT_LE(limited.energy / (limited.end - limited.start), 401_W);
}

TEST_F(EngineTest, KnobThatActsInTheMidstOfAnIterationMovesItsEnd) {
  Start({.token_budget = 8192});
  Submit(8000, {1});
  const Seconds foreseen = engine_->NextEvent().value();
  RunUntil(10ms);
  ASSERT_TRUE(gpus_[0]->LockClockWithoutJournal(ClockDomain::kGraphics, {990_MHz, 990_MHz}).ok());
  RunUntilEmpty();
  ASSERT_EQ(recorder_.iterations.size(), 1U);
  EXPECT_GT(recorder_.iterations[0].end, foreseen);
  const auto accounts = engine_->ReadAccounts(Now());
  EXPECT_NEAR(accounts.value().total() / ExactEnergy(), 1.0, 1e-9);
}

TEST_F(EngineTest, LongPromptIsSplitAndSharesIterationsWithDecoding) {
  Start({.token_budget = 512});
  const RequestId early = Submit(10, {100});
  RunUntil(50ms);
  const RequestId late = Submit(2000, {2});
  RunUntilEmpty();
  EXPECT_EQ(recorder_.arrivals[early].size(), 100U);
  EXPECT_EQ(recorder_.arrivals[late].size(), 2U);
  // 511 prompt tokens beside one decoded token: four parts.
  EXPECT_EQ(std::count_if(recorder_.iterations.begin(), recorder_.iterations.end(),
                          [](const auto& i) { return i.decodes == 1 && i.prompt_tokens > 0; }),
            4);
  for (const IterationReport& iteration : recorder_.iterations)
    EXPECT_LE(iteration.decodes + iteration.prompt_tokens, 512U);
}

TEST_F(EngineTest, SharesOfAnIterationAreEqualWeightsPlusOwnWork) {
  Start();
  Submit(1, {1});  // The next two wait for it and begin together.
  const RequestId small = Submit(10, {1});
  const RequestId large = Submit(1000, {1});
  RunUntilEmpty();
  ASSERT_EQ(recorder_.iterations.size(), 2U);
  const IterationParts parts(Llama8B(), 1);
  const IterationLaw law(H100(), recorder_.iterations[1].clock);
  const Joules weights = law.Cost(parts.Fixed()).energy;
  const Joules first = law.Cost(parts.Prompt({.start = 0, .tokens = 10})).energy;
  const Joules second = law.Cost(parts.Prompt({.start = 0, .tokens = 1000})).energy;
  const double scale = recorder_.iterations[1].energy / (weights + first + second);
  EXPECT_NEAR(recorder_.truths.at(small).prefill / ((weights / 2 + first) * scale), 1.0, 1e-9);
  EXPECT_NEAR(recorder_.truths.at(large).prefill / ((weights / 2 + second) * scale), 1.0, 1e-9);
  EXPECT_EQ(recorder_.truths.at(small).decode, 0_J);
}

class TruthTest : public EngineTest, public ::testing::WithParamInterface<unsigned> {};

TEST_P(TruthTest, RequestsAndIdleAreTheExactEnergyOfTheGpus) {
  const unsigned gpus = GetParam();
  Start({}, gpus == 1 ? Llama8B() : *FindLanguageModel("llama-3.1-70b").value(), gpus);
  constexpr int kRequests = 300;
  Random random(3);
  Seconds arrival{0.5};
  for (int i = 0; i < kRequests; ++i) {
    arrival += Seconds(-0.15 * std::log(1.0 - random.Uniform()));
    RunUntil(arrival);
    const RequestId id = Submit(1 + static_cast<unsigned>(random.Below(3000)),
                                {1 + static_cast<unsigned>(random.Below(300))});
    if (i % 10 == 0) {
      RunUntil(arrival + 50ms);
      ASSERT_TRUE(engine_->Cancel(Now(), id).ok());
    }
  }
  RunUntil(arrival + 120s);
  ASSERT_EQ(recorder_.truths.size(), kRequests);
  Joules requests(0);
  for (const auto& [id, truth] : recorder_.truths) requests += truth.energy();
  const auto accounts = engine_->ReadAccounts(Now());
  ASSERT_TRUE(accounts.ok());
  EXPECT_GT(accounts.value().idle, 100_J);
  EXPECT_EQ(accounts.value().unfinished, 0_J);
  EXPECT_NEAR((requests + accounts.value().idle) / ExactEnergy(), 1.0, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(GroupSizes, TruthTest, ::testing::Values(1U, 4U));

TEST_F(EngineTest, FullCacheStopsTheNewestRequestAndFinishesItLater) {
  Start({.kv_tokens = 1000});
  const RequestId old = Submit(300, {400});
  const RequestId young = Submit(300, {300});
  RunUntilEmpty();
  EXPECT_EQ(recorder_.truths.at(old).preemptions, 0U);
  EXPECT_GE(recorder_.truths.at(young).preemptions, 1U);
  EXPECT_EQ(recorder_.arrivals[old].size(), 400U);
  EXPECT_EQ(recorder_.arrivals[young].size(), 300U);
  EXPECT_LT(recorder_.truths.at(old).end, recorder_.truths.at(young).end);
  // Its context was processed twice.
  unsigned prompt_tokens = 0;
  for (const IterationReport& iteration : recorder_.iterations)
    prompt_tokens += iteration.prompt_tokens;
  EXPECT_GT(prompt_tokens, 900U);
  EXPECT_EQ(engine_->kv_tokens(), 0U);
}

TEST_F(EngineTest, RequestLargerThanTheCacheIsRefused) {
  Start({.kv_tokens = 1000});
  const auto refused = engine_->Submit(Now(), {.prompt_tokens = 900, .output_tokens = {200}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("1000"));
}

TEST_F(EngineTest, AtMostMaxSequencesRunAndTheOthersWaitInOrder) {
  Start({.max_sequences = 2});
  std::vector<RequestId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(Submit(10, {20}));
  RunUntil(engine_->NextEvent().value());
  EXPECT_EQ(engine_->running(), 2U);
  EXPECT_EQ(engine_->waiting(), 2U);
  RunUntilEmpty();
  for (std::size_t i = 1; i < ids.size(); ++i)
    EXPECT_LE(recorder_.truths.at(ids[i - 1]).first_token, recorder_.truths.at(ids[i]).first_token);
  for (const IterationReport& iteration : recorder_.iterations)
    EXPECT_LE(iteration.decodes + iteration.prompts, 2U);
}

TEST_F(EngineTest, CancelledRequestPaysItsIterationsAndLeaves) {
  Start({.max_sequences = 1});
  const RequestId running = Submit(10, {1000});
  const RequestId waiting = Submit(10, {1000});
  RunUntil(100ms);
  ASSERT_TRUE(engine_->Cancel(Now(), waiting).ok());
  EXPECT_EQ(recorder_.truths.at(waiting).energy(), 0_J);
  ASSERT_TRUE(engine_->Cancel(Now(), running).ok());
  RunUntilEmpty();
  const RequestTruth& truth = recorder_.truths.at(running);
  EXPECT_EQ(truth.outcome, RequestOutcome::kCancelled);
  EXPECT_EQ(truth.output_tokens, recorder_.arrivals[running].size());
  EXPECT_LT(truth.output_tokens, 20U);
  EXPECT_EQ(engine_->kv_tokens(), 0U);
  EXPECT_NEAR(engine_->ReadAccounts(Now()).value().total() / ExactEnergy(), 1.0, 1e-9);
  ASSERT_TRUE(engine_->Cancel(Now(), running).ok());  // Unknown by now.
}

TEST_F(EngineTest, CachedPromptTokensCostNoPrefill) {
  Start({.prefix_hit_rate = 0.75});
  const RequestId id = Submit(1000, {2});
  RunUntilEmpty();
  EXPECT_EQ(recorder_.truths.at(id).cached_tokens, 750U);
  EXPECT_EQ(recorder_.iterations[0].prompt_tokens, 250U);
}

TEST_F(EngineTest, SequencesOfOneRequestShareItsPrompt) {
  Start();
  const RequestId id = Submit(500, {3, 5, 5});
  RunUntilEmpty();
  EXPECT_EQ(recorder_.truths.at(id).output_tokens, 13U);
  EXPECT_EQ(recorder_.iterations[0].prompt_tokens, 500U);
  EXPECT_EQ(recorder_.iterations[1].decodes, 3U);
  EXPECT_EQ(recorder_.iterations[4].decodes, 2U);
  EXPECT_EQ(engine_->kv_tokens(), 0U);
}

TEST_F(EngineTest, PromptOnlyRequestEndsWithItsPrompt) {
  Start();
  const RequestId id = Submit(100, {});
  RunUntilEmpty();
  EXPECT_EQ(recorder_.iterations.size(), 1U);
  EXPECT_EQ(recorder_.truths.at(id).output_tokens, 0U);
  EXPECT_GT(recorder_.truths.at(id).prefill, 0_J);
}

TEST_F(EngineTest, ListenerMaySubmitTheNextRequest) {
  class Loop final : public EngineListener {
   public:
    void OnIteration(const IterationReport&) override {}
    void OnEnd(const RequestTruth& truth) override {
      if (++ended == 5) return;
      const auto next = engine->Submit(truth.end, {.prompt_tokens = 10, .output_tokens = {3}});
      EXPECT_TRUE(next.ok());
    }
    InferenceEngine* engine = nullptr;
    int ended = 0;
  } loop;
  SimulatedGpu gpu(clock_, H100());
  auto created = InferenceEngine::Create(Llama8B(), AccessTo({&gpu}), {}, loop);
  ASSERT_TRUE(created.ok());
  loop.engine = created.value().get();
  ASSERT_TRUE(loop.engine->Submit(0s, {.prompt_tokens = 10, .output_tokens = {3}}).ok());
  clock_.Advance(1s);
  ASSERT_TRUE(loop.engine->AdvanceTo(1s).ok());
  EXPECT_EQ(loop.ended, 5);
}

TEST_F(EngineTest, ModelThatDoesNotFitIsRefusedWithTheNumberOfGpus) {
  SimulatedGpu gpu(clock_, H100());
  const auto engine = InferenceEngine::Create(*FindLanguageModel("llama-3.1-70b").value(),
                                              AccessTo({&gpu}), {}, recorder_);
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message, ::testing::HasSubstr("at least 2 GPUs"));
}

TEST_F(EngineTest, FastGpuOfAGroupSpinsUntilTheSlowOneIsDone) {
  Start({}, Llama8B(), 2);
  ASSERT_TRUE(gpus_[1]->LockClockWithoutJournal(ClockDomain::kGraphics, {345_MHz, 345_MHz}).ok());
  RunUntil(1s);
  const RequestId id = Submit(1000, {50});
  RunUntil(1050ms);
  EXPECT_GT(gpus_[0]->ExactPower(), 2.0 * H100().idle_power);
  RunUntilEmpty();
  const auto accounts = engine_->ReadAccounts(Now());
  EXPECT_NEAR(accounts.value().total() / ExactEnergy(), 1.0, 1e-9);
  EXPECT_NEAR((recorder_.truths.at(id).energy() + accounts.value().idle) / ExactEnergy(), 1.0,
              1e-9);
}

TEST_F(EngineTest, TwoEnginesOnOneGpuTakeTurnsAndShareItsEnergy) {
  Start({.kv_tokens = 100'000});
  Recorder second_recorder;
  auto second = InferenceEngine::Create(Llama8B(), AccessTo({gpus_[0].get()}),
                                        {.kv_tokens = 100'000}, second_recorder);
  ASSERT_TRUE(second.ok());
  Submit(100, {200});
  ASSERT_TRUE(second.value()->Submit(Now(), {.prompt_tokens = 100, .output_tokens = {200}}).ok());
  while (engine_->running() + second.value()->running() > 0) {
    const Seconds next =
        std::min(engine_->NextEvent().value(), second.value()->NextEvent().value());
    clock_.SleepUntil(TimePoint{} + next);
    ASSERT_TRUE(engine_->AdvanceTo(next).ok());
    ASSERT_TRUE(second.value()->AdvanceTo(next).ok());
  }
  const Joules first = recorder_.truths.begin()->second.energy();
  const Joules other = second_recorder.truths.begin()->second.energy();
  EXPECT_NEAR(first / other, 1.0, 0.02);
  EXPECT_NEAR((first + other) / ExactEnergy(), 1.0, 1e-9);
}

TEST_F(EngineTest, StrangerOnTheGpuPaysForHimself) {
  Start();
  Submit(100, {500});
  RunUntil(1s);
  const Joules alone = recorder_.iterations.back().energy;
  ASSERT_TRUE(gpus_[0]->AttachLoad({.demand = 170_W}).ok());
  RunUntil(2s);
  EXPECT_NEAR(recorder_.iterations.back().energy / alone, 1.0, 0.02);
  EXPECT_NEAR(engine_->ReadAccounts(Now()).value().idle.value(), 100.0, 5.0);
}

TEST_F(EngineTest, LateWakeOnASharedNodeLosesNoTime) {
  auto node = SharedNode::CreatePrivate({.gpus = {&H100()}, .seed = 5, .ambient = {}}, clock_);
  ASSERT_TRUE(node.ok());
  auto engine =
      InferenceEngine::Create(Llama8B(), AccessTo(node.value(), {0}), {.pid = 4711}, recorder_);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  ASSERT_TRUE(engine.value()->Submit(0s, {.prompt_tokens = 10, .output_tokens = {100}}).ok());
  // The server looks only every 50 ms; iterations take 7 ms.
  for (int i = 1; i <= 40; ++i) {
    clock_.Advance(50ms);
    ASSERT_TRUE(engine.value()->AdvanceTo(node.value().Now()).ok());
    ASSERT_TRUE(engine.value()->Heartbeat(node.value().Now()).ok());
  }
  ASSERT_EQ(recorder_.iterations.size(), 100U);
  for (std::size_t i = 1; i < recorder_.iterations.size(); ++i)
    EXPECT_EQ(recorder_.iterations[i].start, recorder_.iterations[i - 1].end);
  const Joules exact = node.value().Read(0, node.value().Now()).value().core.exact_energy();
  const auto accounts = engine.value()->ReadAccounts(node.value().Now());
  EXPECT_NEAR(accounts.value().total() / exact, 1.0, 1e-9);

  // Stopped for longer than the heartbeat timeout: it attaches again.
  clock_.Advance(10s);
  ASSERT_TRUE(
      engine.value()->Submit(node.value().Now(), {.prompt_tokens = 10, .output_tokens = {1}}).ok());
  clock_.Advance(1s);
  ASSERT_TRUE(engine.value()->AdvanceTo(node.value().Now()).ok());
  EXPECT_EQ(recorder_.iterations.size(), 101U);
  const Joules later = node.value().Read(0, node.value().Now()).value().core.exact_energy();
  EXPECT_NEAR(engine.value()->ReadAccounts(node.value().Now()).value().total() / later, 1.0, 1e-9);
}

}  // namespace
}  // namespace zeus::sim
