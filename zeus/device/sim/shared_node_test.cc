#include "zeus/device/sim/shared_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::sim {
namespace shared_node_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

class SharedNodeTest : public ::testing::Test {
 protected:
  SharedNode Start(const char* gpus, double time_scale = 1) {
    NodeSpec spec;
    spec.gpus = ParseGpuList(gpus).value();
    spec.time_scale = time_scale;
    return nodes_.Create("test", spec).value();
  }
  SharedNode Open(Access access = Access::kWrite) { return nodes_.Open("test", access).value(); }

  static Status Limit(SharedNode& node, Watts limit) {
    return node.Update(0, [&](GpuCore& core) { return core.SetPowerLimit(limit); });
  }
  static Watts Requested(const SharedNode& node) {
    return node.Read(0, node.Now()).value().core.power_limit().requested;
  }
  static LoadSpec Draw(Watts power, int pid) {
    LoadSpec load;
    load.demand = power;
    load.pid = pid;
    return load;
  }
  static void Attach(SharedNode& node, const LoadSpec& load) {
    ASSERT_TRUE(node.Update(0,
                            [&](GpuCore& core) -> Status {
                              ZEUS_RETURN_IF_ERROR(core.AttachLoad(load));
                              return Ok();
                            })
                    .ok());
  }

  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;
  NodeDirectory nodes_{directory_.path(), "this boot", clock_};
};

// Runs `body` in a process of its own.
template <class Body>
pid_t Fork(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  return child;
}

int Wait(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// The pid of a process that existed.
pid_t DeadProcess() {
  const pid_t child = Fork([] {});
  Wait(child);
  return child;
}

TEST_F(SharedNodeTest, AChangeIsSeenByEveryOtherUser) {
  SharedNode writer = Start("V100");
  const SharedNode reader = Open(Access::kRead);
  ASSERT_TRUE(Limit(writer, 150_W).ok());

  EXPECT_EQ(Requested(reader), 150_W);
}

TEST_F(SharedNodeTest, TimeRunsFromTheStartTimesTheScale) {
  clock_.Advance(100s);
  const SharedNode node = Start("V100", 60);
  EXPECT_EQ(node.Now(), 0s);
  clock_.Advance(2s);

  EXPECT_DOUBLE_EQ(node.Now().count(), 120);
  const GpuCore core = node.Read(0, node.Now()).value().core;
  EXPECT_NEAR((core.exact_energy() / node.Now()).value(), core.model().idle_power.value(), 1e-6);
}

TEST_F(SharedNodeTest, AFailedChangeLeavesTheGpuAsItWas) {
  SharedNode node = Start("V100");
  ASSERT_TRUE(Limit(node, 150_W).ok());
  const auto before = node.Read(0, node.Now()).value().sequence;

  EXPECT_EQ(Limit(node, 9999_W).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Requested(node), 150_W);
  EXPECT_EQ(node.Read(0, node.Now()).value().sequence, before);
}

TEST_F(SharedNodeTest, AReaderMayNotChangeAnything) {
  const SharedNode owner = Start("V100");
  SharedNode reader = Open(Access::kRead);

  EXPECT_EQ(Limit(reader, 150_W).error().code, ErrorCode::kPermissionDenied);
}

TEST_F(SharedNodeTest, AnUnknownGpuSaysWhichExist) {
  const SharedNode node = Start("4xV100");

  EXPECT_EQ(node.Read(4, 0s).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(node.Read(4, 0s).error().message, HasSubstr("GPUs 0 to 3"));
}

TEST_F(SharedNodeTest, ARefreshedViewEqualsAFreshOne) {
  SharedNode node = Start("V100");
  SharedNode::View view = node.Read(0, node.Now()).value();
  for (int i = 0; i < 50; ++i) {
    if (i % 10 == 5) Attach(node, Draw(Watts(40 + i), 0));
    clock_.Advance(Seconds(0.037));
    ASSERT_TRUE(node.Refresh(0, node.Now(), view).ok());
    const GpuCore fresh = node.Read(0, node.Now()).value().core;
    ASSERT_NEAR(view.core.exact_energy().value(), fresh.exact_energy().value(), 1e-9);
    ASSERT_EQ(view.core.counter_millijoules().value(), fresh.counter_millijoules().value());
  }
}

TEST_F(SharedNodeTest, TheLoadOfADeadProcessEndsWhenItsHeartbeatIsOverdue) {
  SharedNode node = Start("V100");
  LoadSpec load = Draw(200_W, DeadProcess());
  load.heartbeat_timeout = 2s;
  Attach(node, load);
  SharedNode::View view = node.Read(0, node.Now()).value();
  clock_.Advance(1s);
  ASSERT_TRUE(node.Refresh(0, node.Now(), view).ok());
  EXPECT_EQ(view.core.processes().size(), 1U);
  clock_.Advance(10s);

  // The one that watched and the one that comes new agree to the last joule.
  ASSERT_TRUE(node.Refresh(0, node.Now(), view).ok());
  const GpuCore fresh = node.Read(0, node.Now()).value().core;
  EXPECT_TRUE(fresh.processes().empty());
  EXPECT_NEAR(view.core.exact_energy().value(), fresh.exact_energy().value(), 1e-9);
  const double idle = fresh.model().idle_power.value();
  EXPECT_NEAR(fresh.exact_energy().value(), 2 * 200 + 9 * idle, 20);
}

// A pid that somebody else has got, or that nobody has waited for, answers signals.
TEST_F(SharedNodeTest, WithoutAHeartbeatTheLoadEndsWhateverBecameOfThePid) {
  SharedNode node = Start("V100");
  Attach(node, Draw(200_W, ::getpid()));
  EXPECT_EQ(node.Read(0, node.Now()).value().core.processes(), std::vector<int>{::getpid()});
  clock_.Advance(3s);

  EXPECT_TRUE(node.Read(0, node.Now()).value().core.processes().empty());
}

TEST_F(SharedNodeTest, ADamagedGpuSaysHowToRemoveTheNode) {
  const SharedNode node = Start("V100");
  const auto size = std::filesystem::file_size(nodes_.NodeFile("test"));
  std::fstream file(nodes_.NodeFile("test"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(size - sizeof(CoreSlot)));
  file << std::string(sizeof(CoreSlot), '\xa5');
  file.close();

  EXPECT_EQ(node.Read(0, 0s).error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(node.Read(0, 0s).error().message, HasSubstr("zeus sim stop --name test"));
}

TEST_F(SharedNodeTest, APrivateNodeWorksWithoutAFile) {
  NodeSpec spec;
  spec.gpus = ParseGpuList("A100").value();
  auto node = SharedNode::CreatePrivate(spec, clock_);

  ASSERT_TRUE(node.ok());
  ASSERT_TRUE(Limit(node.value(), 200_W).ok());
  EXPECT_EQ(Requested(node.value()), 200_W);
}

// Every writer adds its own change; none may be lost, and no reader may see half of one.
TEST_F(SharedNodeTest, ConcurrentWritersLoseNothing) {
  constexpr int kWriters = 4;
  constexpr int kChanges = 300;
  const SharedNode node = Start("V100");
  const auto before = node.Read(0, 0s).value().sequence;
  std::vector<pid_t> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(Fork([&] {
      SharedNode own = Open();
      for (int change = 0; change < kChanges; ++change) {
        if (!Limit(own, Watts(150 + i)).ok()) ::_exit(1);
      }
    }));
  }
  const pid_t reader = Fork([&] {
    const SharedNode own = Open(Access::kRead);
    for (int i = 0; i < 5000; ++i) {
      const auto view = own.Read(0, own.Now());
      if (!view.ok()) ::_exit(1);
      const Watts seen = view.value().core.power_limit().requested;
      if (seen != 250_W && (seen < 150_W || seen >= 154_W)) ::_exit(2);
    }
  });
  for (const pid_t writer : writers) EXPECT_EQ(Wait(writer), 0);
  EXPECT_EQ(Wait(reader), 0);

  EXPECT_EQ(node.Read(0, 0s).value().sequence - before, kWriters * kChanges);
}

TEST_F(SharedNodeTest, AWriterThatDiesAtAnyInstructionLeavesTheNodeUsable) {
  constexpr int kRounds = 300;
  SharedNode node = Start("V100");
  for (int round = 0; round < kRounds; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t victim = Fork([&] {
      SharedNode own = Open();
      static_cast<void>(::write(ready[1], "x", 1));
      while (true) static_cast<void>(Limit(own, 123_W));
    });
    char go = 0;
    ASSERT_EQ(::read(ready[0], &go, 1), 1);
    // Our own changes compete with the victim's until it dies in the midst of one.
    for (int i = 0; i < round % 7; ++i) ASSERT_TRUE(Limit(node, 200_W).ok());
    ASSERT_EQ(::kill(victim, SIGKILL), 0);
    ASSERT_TRUE(WIFSIGNALED(Wait(victim)));
    ::close(ready[0]);
    ::close(ready[1]);

    const Watts seen = Requested(node);
    ASSERT_TRUE(seen == 123_W || seen == 200_W || seen == 250_W) << seen.value();
    ASSERT_TRUE(Limit(node, 200_W).ok());
    ASSERT_EQ(Requested(node), 200_W);
  }
}

TEST_F(SharedNodeTest, AStarterThatDiesLeavesNothing) {
  for (int round = 0; round < 50; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t starter = Fork([&] {
      static_cast<void>(::write(ready[1], "x", 1));
      static_cast<void>(Start("8xV100"));
      ::pause();
    });
    char go = 0;
    ASSERT_EQ(::read(ready[0], &go, 1), 1);
    ASSERT_EQ(::kill(starter, SIGKILL), 0);
    Wait(starter);
    ::close(ready[0]);
    ::close(ready[1]);

    // Either nothing, or a whole node.
    for (const auto& entry : nodes_.List()) {
      EXPECT_TRUE(entry.state.ok()) << entry.state.error().message;
      ASSERT_TRUE(nodes_.Remove(entry.name).ok());
    }
    ASSERT_TRUE(std::filesystem::is_empty(directory_.path()));
  }
}

}  // namespace shared_node_test
}  // namespace zeus::sim
