#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeus/device/sim/node_layout.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace core_slot_test {

using namespace zeus::literals;

class CoreSlotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = ::mmap(nullptr, sizeof(CoreSlot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
    ASSERT_TRUE(slot().Format(GpuCore(testing::Model("V100"), 1, 0)).ok());
  }
  void TearDown() override { ::munmap(memory_, sizeof(CoreSlot)); }

  CoreSlot& slot() { return *static_cast<CoreSlot*>(memory_); }

  Watts Limit() { return slot().Load().value().core.power_limit().requested; }

  void StoreLimit(Watts limit) {
    GpuCore core = slot().Load().value().core;
    if (core.SetPowerLimit(limit).ok()) slot().Store(core);
  }

  // Runs `body` in a process of its own, which must not come back from it alive.
  template <class Body>
  void RunVictim(Body&& body) {
    const pid_t victim = ::fork();
    ASSERT_GE(victim, 0);
    if (victim == 0) {
      ::signal(SIGSEGV, SIG_DFL);  // A sanitizer would report the death that is wanted.
      body();
      ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(victim, &status, 0), victim);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the victim survived";
  }

  void* memory_ = nullptr;
};

TEST_F(CoreSlotTest, TheLockOfADeadWriterPassesToTheNext) {
  RunVictim([&] {
    if (slot().Lock().ok()) ::raise(SIGKILL);
  });
  // Twice: a lock that was not made consistent can be taken once and then never again.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(slot().Lock().ok());
    StoreLimit(150_W);
    slot().Unlock();
  }
  EXPECT_EQ(Limit(), 150_W);
}

// Every page of the slot but the first, which holds the lock, becomes the place where a writer
// dies: it may not write there, in the midst of the copy.
TEST_F(CoreSlotTest, AWriterThatDiesInTheMidstOfAStoreLosesOnlyItsOwnChange) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  ASSERT_GT(sizeof(CoreSlot), page);
  int deaths = 0;
  for (std::size_t offset = page; offset < sizeof(CoreSlot); offset += page) {
    // The two copies take turns: one of two stores meets the page.
    for (int turn = 0; turn < 2; ++turn) {
      const Watts before = Watts(200.0 + deaths);
      ASSERT_TRUE(slot().Lock().ok());
      StoreLimit(before);
      slot().Unlock();
      const std::uint64_t sequence = slot().sequence();
      RunVictim([&] {
        if (!slot().Lock().ok()) return;
        if (::mprotect(static_cast<char*>(memory_) + offset, page, PROT_READ) != 0) return;
        StoreLimit(123_W);
        ::raise(SIGKILL);  // The page is not part of this copy: dies holding the lock all the same.
      });
      const bool halfway = slot().sequence() == sequence;
      deaths += halfway ? 1 : 0;
      EXPECT_EQ(Limit(), halfway ? before : 123_W);
    }
  }
  EXPECT_GE(deaths, 2);
  ASSERT_TRUE(slot().Lock().ok());
  StoreLimit(250_W);
  slot().Unlock();
  EXPECT_EQ(Limit(), 250_W);
}

TEST_F(CoreSlotTest, DamageIsAnErrorAndNotAState) {
  auto* bytes = static_cast<unsigned char*>(memory_);
  for (std::size_t i = sizeof(CoreSlot) / 4; i < sizeof(CoreSlot); i += 64) bytes[i] ^= 0x5a;
  EXPECT_EQ(slot().Load().error().code, ErrorCode::kUnavailable);
}

}  // namespace core_slot_test
}  // namespace zeus::sim
