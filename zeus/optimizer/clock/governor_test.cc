#include "zeus/optimizer/clock/governor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <utility>

namespace zeus {
namespace governor_test {

using namespace zeus::literals;
using ::testing::HasSubstr;

constexpr Hertz kHighest = 2000_MHz;
constexpr Hertz kLowest = 400_MHz;

std::vector<Hertz> Clocks() {
  std::vector<Hertz> clocks;
  for (Hertz clock = kLowest; clock <= kHighest; clock += 50_MHz) clocks.push_back(clock);
  return clocks;
}

ServiceTargets Targets() { return {.ttft = Seconds(1), .tpot = Seconds(0.05)}; }

// An engine with continuous batching that obeys a governor: each iteration gives every sequence a
// token and works on up to 2048 prompt tokens.
class FakeServer {
 public:
  explicit FakeServer(GovernorOptions options)
      : mode_(options.mode),
        governor_(ClockGovernor::Create(Complete(std::move(options))).value()) {}

  void Submit(double prompt, unsigned output) {
    const std::uint64_t id = next_id_++;
    queue_.push_back({.id = id, .prompt = prompt, .left = output, .arrival = now_});
    governor_.OnArrival(Time(), id, prompt);
    if (governor_.WantsDecision()) Decide();
  }

  // Runs for a time with requests of one size coming regularly.
  void Run(double seconds, double per_second = 0, double prompt = 500, unsigned output = 100) {
    const double end = now_ + seconds;
    double arrival = per_second > 0 ? now_ : std::numeric_limits<double>::infinity();
    while (now_ < end) {
      const double event = std::min({arrival, tick_, iteration_end_, end});
      Spend(event - now_);
      now_ = event;
      if (now_ >= iteration_end_) FinishIteration();
      if (now_ >= arrival) {
        Submit(prompt, output);
        arrival += 1.0 / per_second;
      }
      if (now_ >= tick_) {
        Decide();
        tick_ += 0.25;
      }
      if (iteration_end_ > 1e17 && !(queue_.empty() && running_.empty())) StartIteration();
    }
  }

  void Decide() {
    last_ = governor_.Decide({.time = Time(),
                              .energy = sensor_ ? std::optional(Joules(joules_)) : std::nullopt,
                              .clock = somebody_ ? *somebody_ : clock_,
                              .foreign = std::exchange(refusal_, std::nullopt)});
    if (!last_.lock) return;
    ++locks_;
    clock_ = *last_.lock;
  }

  TimePoint Time() const { return TimePoint{} + Seconds(now_); }

  GovernorMode mode_;
  ClockGovernor governor_;
  bool sensor_ = true;
  std::optional<std::string> refusal_;
  std::optional<Hertz> somebody_;  // The clock that another program has set.
  Hertz clock_ = kHighest;
  double now_ = 0;
  double joules_ = 0;
  unsigned locks_ = 0;
  unsigned served_ = 0;
  unsigned late_ = 0;
  ClockDecision last_{};

 private:
  struct Sequence {
    std::uint64_t id;
    double prompt;
    unsigned left;
    double arrival;
    double first = 0;
    double tokens = 0;
  };

  static GovernorOptions Complete(GovernorOptions options) {
    options.clocks = Clocks();
    return options;
  }

  void StartIteration() {
    double budget = 2048 - static_cast<double>(running_.size());
    prompt_ = 0;
    for (Sequence& sequence : queue_) {
      const double part = std::min(budget, sequence.prompt);
      sequence.prompt -= part;
      budget -= part;
      prompt_ += part;
      if (budget <= 0) break;
    }
    const double relative = (somebody_ ? *somebody_ : clock_) / kHighest;
    const auto batch = static_cast<double>(running_.size());
    const double time = (0.007 + 60e-6 * batch) * std::max(1.0, 0.45 / relative) +
                        25e-6 * (batch + prompt_) / relative;
    watts_ = (3 + 0.06 * batch + 0.025 * prompt_) * (0.4 + 0.6 * relative * relative) / time;
    iteration_end_ = now_ + time;
  }

  void FinishIteration() {
    iteration_end_ = std::numeric_limits<double>::infinity();
    for (Sequence& sequence : running_) {
      governor_.OnTokens(Time(), sequence.id, 1);
      ++sequence.tokens;
      --sequence.left;
    }
    while (!queue_.empty() && queue_.front().prompt <= 0) {
      Sequence sequence = queue_.front();
      queue_.pop_front();
      sequence.first = now_;
      --sequence.left;
      governor_.OnTokens(Time(), sequence.id, 1);
      running_.push_back(sequence);
    }
    for (const Sequence& sequence : running_)
      if (sequence.left == 0) {
        governor_.OnEnd(Time(), sequence.id);
        ++served_;
        const double tpot = (now_ - sequence.first) / std::max(1.0, sequence.tokens);
        if (sequence.first - sequence.arrival > 1 || tpot > 0.05) ++late_;
      }
    std::erase_if(running_, [](const Sequence& sequence) { return sequence.left == 0; });
  }

  void Spend(double seconds) {
    joules_ += (70 + (std::isfinite(iteration_end_) ? watts_ : 0)) * seconds;
  }

  std::uint64_t next_id_ = 1;
  std::deque<Sequence> queue_;
  std::vector<Sequence> running_;
  double tick_ = 0.25;
  double iteration_end_ = std::numeric_limits<double>::infinity();
  double prompt_ = 0;
  double watts_ = 0;
};

TEST(ClockGovernorTest, WhatCannotBeGovernedIsRefused) {
  const auto message = [](GovernorOptions options) {
    const auto governor = ClockGovernor::Create(std::move(options));
    return governor.ok() ? "accepted" : governor.error().message;
  };
  EXPECT_THAT(message({.targets = {}, .clocks = Clocks()}), HasSubstr("needs a target"));
  EXPECT_THAT(message({.targets = Targets(), .clocks = {kHighest}}), HasSubstr("two clocks"));
  EXPECT_THAT(message({.targets = Targets(), .clocks = {kHighest, kLowest}}),
              HasSubstr("ascending"));
}

TEST(ClockGovernorTest, ACalmLoadRunsSlowlyAndInTime) {
  FakeServer server({.targets = Targets(), .clocks = {}});
  server.Run(100, 3);  // Learns and sweeps.
  const double before = server.joules_;
  const unsigned late = server.late_;
  server.Run(100, 3);
  FakeServer full({.targets = Targets(), .clocks = {}, .mode = GovernorMode::kObserver});
  full.Run(100, 3);
  const double full_before = full.joules_;
  full.Run(100, 3);

  EXPECT_LT(server.clock_, 1000_MHz);
  EXPECT_LT(server.joules_ - before, 0.75 * (full.joules_ - full_before));
  EXPECT_LE(server.late_ - late, 3U);
  EXPECT_EQ(server.governor_.status().finished, server.served_);
  EXPECT_GT(server.governor_.status().saved, Joules(0));
}

TEST(ClockGovernorTest, ItStartsAtTheHighestClock) {
  FakeServer server({.targets = Targets(), .clocks = {}});
  server.Run(20, 3);
  EXPECT_EQ(server.clock_, kHighest);
  EXPECT_EQ(server.last_.reason, ClockReason::kLearning);
}

TEST(ClockGovernorTest, AnOverloadedEngineStaysAtTheHighestClock) {
  FakeServer server({.targets = Targets(), .clocks = {}});
  for (int second = 0; second < 150; ++second) {
    server.Run(1, 25, 2000, 40);  // More prompt work than a second holds.
    EXPECT_EQ(server.clock_, kHighest) << server.last_.text;
  }
  EXPECT_EQ(server.last_.reason, ClockReason::kMissed);
}

TEST(ClockGovernorTest, WithoutRequestsItTakesTheLowestClockAndWakesAtOnce) {
  FakeServer server({.targets = Targets(), .clocks = {}});
  server.Run(100, 3);
  server.Run(20);
  EXPECT_EQ(server.clock_, kLowest);
  EXPECT_EQ(server.last_.reason, ClockReason::kIdle);
  EXPECT_FALSE(server.governor_.WantsDecision());
  const unsigned locks = server.locks_;
  server.Run(10);
  EXPECT_EQ(server.locks_, locks);
  // A long prompt comes: the decision does not wait for the next period.
  server.Submit(20000, 100);
  EXPECT_GT(server.clock_, 1000_MHz) << server.last_.text;
}

TEST(ClockGovernorTest, ABurstRaisesTheClockAtOnceAndItFallsSlowly) {
  FakeServer server({.targets = Targets(), .clocks = {}});
  server.Run(150, 3);
  ASSERT_LT(server.clock_, 1000_MHz);
  for (int i = 0; i < 12; ++i) server.Submit(1500, 50);
  EXPECT_GT(server.clock_, 1500_MHz) << server.last_.text;
  const Hertz raised = server.clock_;
  server.Run(0.6, 3);
  EXPECT_GE(server.clock_, raised);
  server.Run(60, 3);
  EXPECT_LT(server.clock_, 1000_MHz);
}

TEST(ClockGovernorTest, AClockInOtherHandsIsLeftAloneForAMinute) {
  FakeServer server({.targets = Targets(), .clocks = {}});
  server.Run(100, 3);
  server.refusal_ = "pid 7 holds the clock of gpu:0";
  server.Run(0.3, 3);
  const unsigned locks = server.locks_;
  EXPECT_EQ(server.last_.reason, ClockReason::kForeign);
  EXPECT_THAT(server.last_.text, HasSubstr("stands still: pid 7 holds the clock of gpu:0"));
  server.Run(55, 3);
  EXPECT_EQ(server.locks_, locks);
  server.Run(30, 3);
  EXPECT_GT(server.locks_, locks);
  EXPECT_NE(server.last_.reason, ClockReason::kForeign);
}

TEST(ClockGovernorTest, AClockAboveTheLockedOneWasSetBySomebodyElse) {
  FakeServer server({.targets = Targets(), .clocks = {}});
  server.Run(150, 3);
  ASSERT_LT(server.clock_, 1000_MHz);
  server.somebody_ = 1900_MHz;
  server.Run(5, 3);
  EXPECT_EQ(server.last_.reason, ClockReason::kForeign);
  EXPECT_THAT(server.last_.text, HasSubstr("1900 MHz"));
  EXPECT_FALSE(server.last_.lock);
}

TEST(ClockGovernorTest, AnObserverTouchesNothingAndSaysWhatItWouldSave) {
  FakeServer server({.targets = Targets(), .clocks = {}, .mode = GovernorMode::kObserver});
  server.Run(200, 3);
  EXPECT_EQ(server.locks_, 0U);
  EXPECT_EQ(server.clock_, kHighest);
  EXPECT_LT(server.last_.clock, 1200_MHz);
  const GovernorStatus status = server.governor_.status();
  EXPECT_GT(status.saved, 0.1 * status.used);
  EXPECT_LT(status.saved, 0.8 * status.used);
  EXPECT_EQ(status.added, 0U);
}

TEST(ClockGovernorTest, KnowledgeOfAnEarlierRunSavesTheLearning) {
  FakeServer first({.targets = Targets(), .clocks = {}});
  first.Run(200, 3);
  FakeServer second({.targets = Targets(), .clocks = {}, .knowledge = first.governor_.knowledge()});
  second.Run(20, 3);
  EXPECT_LT(second.clock_, 1200_MHz) << second.last_.text;
}

TEST(ClockGovernorTest, WithoutAnEnergySensorTheTargetsDecide) {
  FakeServer server({.targets = Targets(), .clocks = {}});
  server.sensor_ = false;
  server.Run(200, 3);
  EXPECT_LT(server.clock_, 1500_MHz) << server.last_.text;
  EXPECT_EQ(server.governor_.status().used, Joules(0));
}

TEST(ClockGovernorTest, UnknownCancelledAndRepeatedIdsDoNoHarm) {
  auto governor = ClockGovernor::Create({.targets = Targets(), .clocks = Clocks()}).value();
  const TimePoint start{};
  governor.OnTokens(start, 99, 1);
  governor.OnEnd(start, 99);
  governor.OnPromptTokens(99, 10);
  governor.OnArrival(start, 1, 100);
  governor.OnArrival(start, 1, 100);
  governor.OnPromptTokens(1, 50);
  governor.OnEnd(start + Seconds(1), 1);  // Cancelled before its first token.
  governor.OnEnd(start + Seconds(1), 1);
  EXPECT_EQ(governor.status().finished, 0U);
  EXPECT_EQ(governor.Decide({.time = start + Seconds(5)}).reason, ClockReason::kIdle);
}

TEST(ClockGovernorTest, StatusHasTheLatenciesAtThePercentiles) {
  auto governor = ClockGovernor::Create({.targets = Targets(), .clocks = Clocks()}).value();
  const TimePoint start{};
  for (std::uint64_t id = 1; id <= 10; ++id) {
    governor.OnArrival(start, id, 100);
  }
  for (std::uint64_t id = 1; id <= 10; ++id)
    governor.OnTokens(start + Seconds(0.1 * static_cast<double>(id)), id, 1);
  for (std::uint64_t id = 1; id <= 10; ++id) {
    governor.OnTokens(start + Seconds(2), id, 10);
    governor.OnEnd(start + Seconds(2), id);
  }
  const GovernorStatus status = governor.status();
  ASSERT_TRUE(status.ttft && status.tpot);
  EXPECT_NEAR(status.ttft->count(), 0.9, 1e-9);
  EXPECT_NEAR(status.tpot->count(), 1.8 / 10, 1e-9);
  EXPECT_EQ(status.missed, 10U);
}

}  // namespace governor_test
}  // namespace zeus
