#include "zeus/monitor/sharing/shared_activity_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus {

bool operator==(const ActivityBoard::Change& a, const ActivityBoard::Change& b) {
  return std::abs((a.time - b.time).count()) < 1e-9 && a.device == b.device && a.weight == b.weight;
}
void PrintTo(const ActivityBoard::Change& change, std::ostream* out) {
  *out << "{" << change.time.time_since_epoch().count() << " s, device " << change.device
       << ", weight " << change.weight << "}";
}

namespace shared_activity_board_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Change = ActivityBoard::Change;
using Keys = std::vector<std::string>;

TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

class SharedActivityBoardTest : public ::testing::Test {
 protected:
  auto TryOpen(Keys keys = {"GPU-a", "GPU-b"}) {
    return SharedActivityBoard::Open(path_, std::move(keys), clock_);
  }
  std::unique_ptr<SharedActivityBoard> Open(Keys keys = {"GPU-a", "GPU-b"}) {
    return TryOpen(std::move(keys)).value();
  }

  zeus::testing::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "activity";
  VirtualClock clock_;
};

TEST_F(SharedActivityBoardTest, AProcessAloneHearsNothing) {
  const auto board = Open();
  board->Announce(At(1), 0, 1);

  EXPECT_THAT(board->Poll(At(2)), IsEmpty());
}

TEST_F(SharedActivityBoardTest, OthersHearWhenADeviceIsUsedAndLeft) {
  const auto writer = Open();
  const auto reader = Open();
  writer->Announce(At(1), 1, 2.5);
  writer->Announce(At(1.5), 1, 0);

  EXPECT_THAT(reader->Poll(At(2)), ElementsAre(Change{At(1), 1, 2.5}, Change{At(1.5), 1, 0}));
  EXPECT_THAT(reader->Poll(At(2.1)), IsEmpty());
}

TEST_F(SharedActivityBoardTest, DevicesAreMatchedByHardwareNotByPosition) {
  const auto writer = Open({"GPU-a", "GPU-b", "GPU-c"});
  const auto reader = Open({"GPU-c", "GPU-a"});
  writer->Announce(At(1), 0, 1);
  writer->Announce(At(2), 1, 1);
  writer->Announce(At(3), 2, 1);

  EXPECT_THAT(reader->Poll(At(3.5)), ElementsAre(Change{At(1), 1, 1}, Change{At(3), 0, 1}));
}

TEST_F(SharedActivityBoardTest, WeightsOfSeveralProcessesAddUpInOrderOfTime) {
  const auto reader = Open();
  const auto first = Open();
  const auto second = Open();
  second->Announce(At(1.2), 0, 2);
  first->Announce(At(1.1), 0, 1);
  first->Announce(At(1.3), 0, 0);
  second->Poll(At(1.35));

  EXPECT_THAT(reader->Poll(At(1.4)),
              ElementsAre(Change{At(1.1), 0, 1}, Change{At(1.2), 0, 3}, Change{At(1.3), 0, 2}));
}

TEST_F(SharedActivityBoardTest, WhoComesLaterHearsWhatIsGoingOn) {
  const auto writer = Open();
  writer->Announce(At(0.5), 0, 1);
  clock_.Advance(Seconds(1));
  writer->Poll(At(1));
  const auto reader = Open();
  writer->Poll(At(1.5));

  EXPECT_THAT(reader->Poll(At(1.5)), ElementsAre(Change{At(1), 0, 1}));
}

// An announcement may reach the others after one with a later time.
TEST_F(SharedActivityBoardTest, NewsAreHeldBackUntilOlderOnesCannotFollow) {
  const auto reader = Open();
  const auto slow = Open();
  const auto fast = Open();
  slow->Poll(At(1.001));
  fast->Announce(At(1.001), 0, 1);
  EXPECT_THAT(reader->Poll(At(1.002)), IsEmpty());
  EXPECT_EQ(reader->known_until(), At(1.002) - SharedActivityBoard::kMargin);
  slow->Announce(At(1), 0, 1);
  slow->Poll(At(1.015));
  fast->Poll(At(1.015));

  EXPECT_THAT(reader->Poll(At(1.02)), ElementsAre(Change{At(1), 0, 1}, Change{At(1.001), 0, 2}));
}

TEST_F(SharedActivityBoardTest, WhatArrivesTooLateCountsFromWhatWasTold) {
  const auto reader = Open();
  const auto writer = Open();
  reader->Poll(At(2));
  const TimePoint told = reader->known_until();
  writer->Announce(At(1), 0, 1);
  writer->Poll(At(3));

  EXPECT_THAT(reader->Poll(At(3)), ElementsAre(Change{told, 0, 1}));
}

TEST_F(SharedActivityBoardTest, ASilentProcessIsGoneSinceItsLastSign) {
  const auto reader = Open();
  const auto victim = Open();
  victim->Announce(At(1), 0, 1);
  victim->Poll(At(1.5));
  EXPECT_THAT(reader->Poll(At(1.6)), ElementsAre(Change{At(1), 0, 1}));

  // Until it is certain, nothing after the last sign is told, not even of others.
  const auto other = Open();
  other->Announce(At(2), 1, 1);
  other->Poll(At(4.4));
  EXPECT_THAT(reader->Poll(At(4.4)), IsEmpty());
  EXPECT_EQ(reader->known_until(), At(1.5));

  other->Poll(At(4.6));
  EXPECT_THAT(reader->Poll(At(4.6)), ElementsAre(Change{At(1.5), 0, 0}, Change{At(2), 1, 1}));
}

TEST_F(SharedActivityBoardTest, AProcessWithOtherDevicesDelaysNothing) {
  const auto reader = Open({"GPU-a"});
  const auto elsewhere = Open({"GPU-z"});
  elsewhere->Announce(At(1), 0, 1);

  reader->Poll(At(2));
  EXPECT_EQ(reader->known_until(), At(2) - SharedActivityBoard::kMargin);
}

// It may tell at its next visit what it began long before.
TEST_F(SharedActivityBoardTest, AnIdleProcessIsAwaitedForAWhile) {
  const auto reader = Open();
  const auto idle = Open();
  idle->Poll(At(1));
  reader->Poll(At(1.1));
  EXPECT_EQ(reader->known_until(), At(1));
  idle->Announce(At(1.05), 0, 1);
  idle->Poll(At(1.15));
  EXPECT_THAT(reader->Poll(At(1.2)), ElementsAre(Change{At(1.05), 0, 1}));
  idle->Announce(At(1.25), 0, 0);

  reader->Poll(At(2));
  EXPECT_EQ(reader->known_until(), At(2) - activity::kNewsTimeout);
}

TEST_F(SharedActivityBoardTest, AProcessThatWakesUpIsThereAgain) {
  const auto reader = Open();
  const auto sleeper = Open();
  sleeper->Announce(At(1), 0, 1);
  EXPECT_THAT(reader->Poll(At(6)), ElementsAre(Change{At(1), 0, 1}, Change{At(1), 0, 0}));
  sleeper->Poll(At(7));

  EXPECT_THAT(reader->Poll(At(7.1)), ElementsAre(Change{At(7), 0, 1}));
}

TEST_F(SharedActivityBoardTest, AProcessThatLeavesTakesItsWeightsAlong) {
  const auto reader = Open();
  auto writer = Open();
  writer->Announce(At(0), 0, 1);
  clock_.Advance(Seconds(1));
  writer.reset();

  EXPECT_THAT(reader->Poll(At(1.5)), ElementsAre(Change{At(0), 0, 1}, Change{At(1), 0, 0}));
}

TEST_F(SharedActivityBoardTest, TheSlotOfADeadProcessIsGivenAwayWithoutItsWeights) {
  const auto reader = Open();
  const auto dead = Open();
  dead->Announce(At(0), 0, 1);
  clock_.Advance(Seconds(10));
  reader->Poll(At(10));
  const auto heir = Open();
  heir->Announce(At(11), 1, 1);
  heir->Poll(At(11.5));

  EXPECT_THAT(reader->Poll(At(11.6)), ElementsAre(Change{At(11), 1, 1}));
}

TEST_F(SharedActivityBoardTest, WhoLostItsSlotWhileStoppedGetsAnother) {
  const auto stopped = Open();
  stopped->Announce(At(0), 0, 1);
  clock_.Advance(Seconds(10));
  const auto heir = Open({"GPU-b", "GPU-a"});  // Alone, so it also renumbers the keys.
  stopped->Announce(At(10), 0, 3);             // No process reads it, but it is not forgotten.
  heir->Announce(At(10), 1, 1);

  EXPECT_THAT(stopped->Poll(At(10)), IsEmpty());
  EXPECT_THAT(stopped->Poll(At(10.5)), ElementsAre(Change{At(10), 0, 1}));
  EXPECT_THAT(heir->Poll(At(10.6)), ElementsAre(Change{At(10), 1, 3}));
}

TEST_F(SharedActivityBoardTest, AReaderThatWasTooSlowKnowsTheOutcomeAndThatItMissedSomething) {
  const auto reader = Open();
  const auto writer = Open();
  for (unsigned i = 0; i <= 3 * activity::kEvents; ++i)
    writer->Announce(At(1 + i * 1e-4), 0, i % 2 == 0 ? 1 : 0);
  writer->Poll(At(2.5));
  EXPECT_EQ(reader->overruns(), 0U);
  const auto changes = reader->Poll(At(2.6));

  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().weight, 1);
  EXPECT_EQ(reader->overruns(), 1U);
  writer->Announce(At(3), 0, 0);
  EXPECT_THAT(reader->Poll(At(3.1)), ElementsAre(Change{At(3), 0, 0}));
}

TEST_F(SharedActivityBoardTest, AJournalThatJustFitsLosesNothing) {
  const auto reader = Open();
  const auto writer = Open();
  for (unsigned i = 0; i < activity::kEvents; ++i) writer->Announce(At(1 + i * 1e-4), 0, 1 + i % 2);
  writer->Poll(At(2));

  EXPECT_EQ(reader->Poll(At(2.1)).size(), activity::kEvents);
  EXPECT_EQ(reader->overruns(), 0U);
}

TEST_F(SharedActivityBoardTest, TooManyProcessesAreRefusedUntilOneLeaves) {
  std::vector<std::unique_ptr<SharedActivityBoard>> boards;
  for (std::size_t i = 0; i < activity::kSlots; ++i) boards.push_back(Open());
  EXPECT_EQ(TryOpen().error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(TryOpen().error().message, HasSubstr("256 processes"));
  boards.pop_back();

  EXPECT_TRUE(TryOpen().ok());
}

TEST_F(SharedActivityBoardTest, TooManyDevicesAreRefusedUntilNobodyIsThere) {
  Keys many;
  for (std::size_t i = 0; i < activity::kKeys; ++i) many.push_back("GPU-" + std::to_string(i));
  auto board = Open(many);
  EXPECT_EQ(TryOpen({"GPU-new"}).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(TryOpen({"GPU-7"}).ok());
  board.reset();

  EXPECT_TRUE(TryOpen({"GPU-new"}).ok());
}

TEST_F(SharedActivityBoardTest, KeysMustBeUsableAndDifferent) {
  for (const Keys& keys : {Keys{""}, Keys{std::string(64, 'x')}, Keys{"GPU-a", "GPU-a"}}) {
    EXPECT_EQ(TryOpen(keys).error().code, ErrorCode::kInvalidArgument) << keys.front();
  }
  EXPECT_TRUE(TryOpen({std::string(63, 'x')}).ok());
}

TEST_F(SharedActivityBoardTest, GarbageInAJournalDoesNotSpread) {
  const auto reader = Open();
  const auto writer = Open();
  auto file = activity::ActivityFile::Open(path_, clock_).value();
  activity::Slot& slot = file->layout().slots[1];
  activity::Journal& journal = file->layout().journals[1];
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  journal.Append(slot, kNan, 0, 1);
  journal.Append(slot, 1e300, 0, kNan);
  journal.Append(slot, 1.1, 1, -5);
  journal.events[3].key = 1U << 30;
  slot.reserved = 4;
  slot.published = 4;

  for (const Change& change : reader->Poll(At(1.2))) {
    EXPECT_TRUE(change.time <= At(1.2) && change.device < 2 && change.weight >= 0)
        << ::testing::PrintToString(change);
  }
  slot.published = 1;  // Backwards.
  reader->Poll(At(1.3));
  EXPECT_EQ(reader->overruns(), 1U);
}

// Run with the thread sanitizer.
TEST_F(SharedActivityBoardTest, ReadersSeeEveryChangeOfConcurrentWriters) {
  constexpr int kWriters = 3;
  constexpr int kRounds = 20'000;
  const auto reader = Open({"GPU-a"});
  std::vector<std::unique_ptr<SharedActivityBoard>> boards;
  for (int i = 0; i < kWriters; ++i) boards.push_back(Open({"GPU-a"}));
  std::vector<std::thread> writers;
  std::atomic<int> running = kWriters;
  for (const auto& board : boards) {
    writers.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) board->Announce(At(1), 0, 1 + round % 2);
      board->Announce(At(1), 0, 5);
      board->Poll(At(1.5));
      --running;
    });
  }
  double weight = 0;
  while (running > 0) {
    for (const Change& change : reader->Poll(At(1.4))) {
      weight = change.weight;
      ASSERT_TRUE(weight >= 0 && weight <= kWriters * 5.0 && change.device == 0);
    }
  }
  for (std::thread& writer : writers) writer.join();
  for (const Change& change : reader->Poll(At(1.6))) weight = change.weight;
  EXPECT_EQ(weight, kWriters * 5);
}

}  // namespace shared_activity_board_test
}  // namespace zeus
