#include "zeus/device/sim/node_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace zeus::sim {
namespace node_work_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

class NodeWorkTest : public ::testing::Test {
 protected:
  static LoadSpec Steps(double steps) {
    LoadSpec load;
    load.work = StepWork{.operations = 2e13, .bytes = 1e10};
    load.steps = steps;
    return load;
  }
  static LoadSpec Endless() { return Steps(std::numeric_limits<double>::infinity()); }

  std::unique_ptr<NodeWork> Attach(const std::vector<unsigned>& gpus, const LoadSpec& load) {
    auto work = NodeWork::Attach(node_, clock_, gpus, load);
    EXPECT_TRUE(work.ok());
    return std::move(work).value();
  }
  Watts Power(unsigned gpu) { return node_.Read(gpu, node_.Now()).value().core.exact_power(); }
  Watts Idle() { return node_.Read(0, node_.Now()).value().core.model().idle_power; }
  Seconds SimulatedTime(const std::function<void()>& body) {
    const Seconds begin = node_.Now();
    body();
    return node_.Now() - begin;
  }
  void Limit(unsigned gpu, Watts limit) {
    ASSERT_TRUE(node_
                    .Update(gpu,
                            [&](GpuCore& core) {
                              core.SetKnobLatency(Seconds(0));
                              return core.SetPowerLimit(limit);
                            })
                    .ok());
  }

  static NodeSpec TwoA100() {
    NodeSpec spec;
    spec.gpus = ParseGpuList("2xA100").value();
    spec.time_scale = 10;
    return spec;
  }

  VirtualClock clock_;
  SharedNode node_ = SharedNode::CreatePrivate(TwoA100(), clock_).value();
};

TEST_F(NodeWorkTest, SoManyStepsEndByThemselves) {
  const Seconds one = SimulatedTime([&] { ASSERT_TRUE(Attach({0}, Steps(1))->Wait().ok()); });
  const auto work = Attach({0}, Steps(5));
  const Seconds five = SimulatedTime([&] { ASSERT_TRUE(work->Wait().ok()); });
  EXPECT_GT(one, 10ms);
  EXPECT_NEAR(five / one, 5, 0.01);
  EXPECT_LT(Power(0), Idle() + 10_W);
}

TEST_F(NodeWorkTest, TheSlowestGpuIsWaitedFor) {
  const Seconds fast = SimulatedTime([&] { ASSERT_TRUE(Attach({0, 1}, Steps(4))->Wait().ok()); });
  Limit(1, 120_W);
  const Seconds slow = SimulatedTime([&] { ASSERT_TRUE(Attach({1}, Steps(4))->Wait().ok()); });
  ASSERT_GT(slow, 1.1 * fast);
  EXPECT_NEAR(SimulatedTime([&] {
                ASSERT_TRUE(Attach({0, 1}, Steps(4))->Wait().ok());
              }) / slow,
              1, 0.01);
}

TEST_F(NodeWorkTest, ALimitThatChangesMeanwhileMovesTheEnd) {
  const Seconds fast = SimulatedTime([&] { ASSERT_TRUE(Attach({0}, Steps(100))->Wait().ok()); });
  const auto work = Attach({0}, Steps(100));
  clock_.Advance(fast / node_.time_scale() / 2);
  Limit(0, 120_W);
  EXPECT_GT(SimulatedTime([&] { ASSERT_TRUE(work->Wait().ok()); }), 0.55 * fast);
}

TEST_F(NodeWorkTest, WaitingMayBeCutShort) {
  const auto work = Attach({0}, Steps(1000));
  const Seconds waited = SimulatedTime([&] { EXPECT_FALSE(work->WaitFor(50ms).value()); });
  EXPECT_NEAR(waited.count(), 0.5, 1e-6);  // Real time: ten times as much of the node's.
}

TEST_F(NodeWorkTest, AnEndlessLoadGoesOnBetweenRunsAndLivesByHeartbeats) {
  const auto work = Attach({0, 1}, Endless());
  ASSERT_TRUE(work->Begin(3).ok());
  const Seconds three = SimulatedTime([&] { ASSERT_TRUE(work->Wait().ok()); });
  EXPECT_GT(Power(0), Idle() + 50_W);
  clock_.Advance(2s);  // Less than the timeout.
  ASSERT_TRUE(work->Begin(3).ok());
  EXPECT_NEAR(SimulatedTime([&] { ASSERT_TRUE(work->Wait().ok()); }) / three, 1, 0.01);
}

TEST_F(NodeWorkTest, ALoadThatEndedWhileTheProcessWasStoppedIsTakenUpAgain) {
  const auto work = Attach({0}, Endless());
  clock_.Advance(10s);
  EXPECT_LT(Power(0), Idle() + 10_W);
  ASSERT_TRUE(work->Begin(2).ok());
  EXPECT_GT(Power(0), Idle() + 50_W);
  EXPECT_TRUE(work->Wait().ok());
}

TEST_F(NodeWorkTest, ADrawOfSomeSecondsIsWaitedFor) {
  LoadSpec load;
  load.demand = 200_W;
  load.duration = 3s;
  const auto work = Attach({0}, load);
  EXPECT_NEAR(SimulatedTime([&] { ASSERT_TRUE(work->Wait().ok()); }).count(), 3, 1e-3);
}

TEST_F(NodeWorkTest, DestructionTakesTheLoadAway) {
  Attach({0, 1}, Endless()).reset();
  EXPECT_LT(Power(0), Idle() + 10_W);
  EXPECT_LT(Power(1), Idle() + 10_W);
}

TEST_F(NodeWorkTest, AfterAnErrorNoGpuRunsIt) {
  EXPECT_FALSE(NodeWork::Attach(node_, clock_, {}, Steps(1)).ok());
  EXPECT_FALSE(NodeWork::Attach(node_, clock_, {0, 2}, Endless()).ok());
  EXPECT_LT(Power(0), Idle() + 10_W);
  const auto twice = NodeWork::Attach(node_, clock_, {1, 1}, Endless());
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().message, HasSubstr("named twice"));
  EXPECT_LT(Power(1), Idle() + 10_W);
}

TEST_F(NodeWorkTest, AStoppedNodeEndsTheWait) {
  const auto work = Attach({0}, Steps(1000));
  node_.MarkStopped();
  const Status waited = work->Wait();
  ASSERT_FALSE(waited.ok());
  EXPECT_THAT(waited.error().message, HasSubstr("stopped under its work"));
}

}  // namespace node_work_test
}  // namespace zeus::sim
