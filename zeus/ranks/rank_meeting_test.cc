#include "zeus/ranks/rank_meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace rank_meeting_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Outcome = RankMeeting::Outcome;

class RankMeetingTest : public ::testing::Test {
 protected:
  RankPlace Place(int rank) const {
    return {.rank = rank, .size = size_, .launcher = "test", .job = "test:1"};
  }

  RankShare Share(int rank) const { return {.rank = rank, .host = "n" + std::to_string(rank % 2)}; }

  RankShare Measured(int rank) const {
    RankShare share = Share(rank);
    share.exit_code = 0;
    share.measurement.emplace();
    return share;
  }

  std::unique_ptr<RankMeeting> Join(int rank) {
    return std::make_unique<RankMeeting>(clock_, Place(rank), Share(rank),
                                         MeetingPoint::In(folder_.path() / "ranks", Place(rank)),
                                         times_);
  }

  void JoinAll(int size) {
    size_ = size;
    for (int rank = 0; rank < size; ++rank) ranks_.push_back(Join(rank));
  }

  // Waits for the meeting to say something new, for a minute at most.
  bool Wait(RankMeeting& meeting, const std::function<bool()>& condition) {
    const TimePoint deadline = clock_.Now() + 60s;
    while (!condition()) {
      if (clock_.Now() > deadline) return false;
      ::pollfd news{.fd = meeting.descriptor(), .events = POLLIN, .revents = 0};
      ::poll(&news, 1, 20);
      meeting.ClearNews();
    }
    return true;
  }

  void AllMeet() {
    for (auto& rank : ranks_) ASSERT_TRUE(Wait(*rank, [&] { return rank->Met(); }));
  }

  void AwaitOver(RankMeeting& meeting) {
    ASSERT_TRUE(Wait(meeting, [&] { return meeting.Over(); }));
  }

  Outcome Decided(RankMeeting& meeting) {
    EXPECT_TRUE(Wait(meeting, [&] { return meeting.outcome() != Outcome::kUndecided; }));
    return meeting.outcome();
  }

  void EndAndDeliver(int rank) {
    AwaitOver(*ranks_[rank]);
    ranks_[rank]->Deliver(Measured(rank));
  }

  // Which rank has the report; all others must have been told that it has.
  int Reporter() {
    int reporter = -1;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank] == nullptr || Decided(*ranks_[rank]) != Outcome::kReport) continue;
      EXPECT_EQ(reporter, -1) << "two ranks report";
      reporter = static_cast<int>(rank);
    }
    return reporter;
  }

  testing::TemporaryDirectory folder_;
  SystemClock clock_;
  // No test waits for it unless it says so.
  MeetingTimes times_{.absence = 600s};
  int size_ = 0;
  std::vector<std::unique_ptr<RankMeeting>> ranks_;
};

TEST_F(RankMeetingTest, RankZeroReportsForAll) {
  JoinAll(4);
  for (auto& rank : ranks_) rank->End();
  for (int rank = 0; rank < 4; ++rank) EndAndDeliver(rank);
  EXPECT_EQ(Reporter(), 0);
  const std::vector<RankShare> shares = ranks_[0]->TakeShares();
  ASSERT_THAT(shares, SizeIs(4));
  for (const RankShare& share : shares) EXPECT_TRUE(share.measurement) << share.rank;
}

TEST_F(RankMeetingTest, NobodyStopsMeasuringWhileACommandRuns) {
  JoinAll(3);
  ranks_[0]->End();
  ranks_[2]->End();
  EXPECT_FALSE(ranks_[0]->Over());
  ranks_[1]->Deliver(Measured(1));
  EXPECT_EQ(Decided(*ranks_[1]), Outcome::kReported);
  EndAndDeliver(0);
  EndAndDeliver(2);
  EXPECT_EQ(Reporter(), 0);
}

TEST_F(RankMeetingTest, ARankThatIsKilledIsNotAwaited) {
  JoinAll(3);
  AllMeet();
  ranks_[2] = nullptr;  // Its connections end, as those of a killed process do.
  ranks_[0]->End();
  ranks_[1]->End();
  EndAndDeliver(0);
  EndAndDeliver(1);
  EXPECT_EQ(Reporter(), 0);
  const std::vector<RankShare> shares = ranks_[0]->TakeShares();
  ASSERT_THAT(shares, SizeIs(3));
  EXPECT_FALSE(shares[2].measurement);
}

TEST_F(RankMeetingTest, AnotherRankReportsWhenTheChairIsKilled) {
  JoinAll(4);
  AllMeet();
  ranks_[0] = nullptr;
  for (int rank = 1; rank < 4; ++rank) ranks_[rank]->End();
  for (int rank = 1; rank < 4; ++rank) EndAndDeliver(rank);
  const int reporter = Reporter();
  ASSERT_GT(reporter, 0);
  EXPECT_THAT(ranks_[reporter]->TakeShares(), SizeIs(4));  // The lost one included.
}

TEST_F(RankMeetingTest, WhoMeetsNobodyReportsAlone) {
  times_.absence = 0.1s;
  size_ = 2;
  ranks_.push_back(Join(1));
  ranks_[0]->End();
  AwaitOver(*ranks_[0]);
  ranks_[0]->Deliver(Measured(1));
  EXPECT_EQ(Decided(*ranks_[0]), Outcome::kReport);
  EXPECT_THAT(ranks_[0]->TakeShares(), SizeIs(1));
  EXPECT_THAT(ranks_[0]->Remarks().back(), HasSubstr((folder_.path() / "ranks").string()));
}

TEST_F(RankMeetingTest, WithoutAFolderARankReportsAlone) {
  size_ = 2;
  const auto blocked = folder_.AddFile("file", "");
  RankMeeting meeting(clock_, Place(1), Share(1), MeetingPoint::In(blocked, Place(1)), times_);
  meeting.End();
  EXPECT_TRUE(meeting.Over());
  meeting.Deliver(Measured(1));
  EXPECT_EQ(meeting.outcome(), Outcome::kReport);
  EXPECT_THAT(meeting.Remarks(), SizeIs(1));
}

TEST_F(RankMeetingTest, WhoHasNotTheSecretIsNotHeard) {
  size_ = 2;
  ranks_.push_back(Join(0));
  const auto address = MeetingPoint::In(folder_.path() / "ranks", Place(0)).value().Find(0);
  ASSERT_TRUE(address);
  auto stranger = LineConnection::Connect("127.0.0.1", address->port);
  ASSERT_TRUE(stranger.ok());
  stranger.value()->Send({{"hello", 1}, {"token", "guess"}, {"share", ToJson(Measured(1))}});
  EXPECT_TRUE(Wait(*ranks_[0], [&] { return !stranger.value()->Pump(); }));
  EXPECT_FALSE(stranger.value()->Next());
  auto noise = LineConnection::Connect("127.0.0.1", address->port);
  ASSERT_TRUE(noise.ok());
  noise.value()->Send(Json("no object"));
  EXPECT_TRUE(Wait(*ranks_[0], [&] { return !noise.value()->Pump(); }));
  ranks_.push_back(Join(1));
  for (auto& rank : ranks_) rank->End();
  EndAndDeliver(0);
  EndAndDeliver(1);
  EXPECT_EQ(Reporter(), 0);
  EXPECT_THAT(ranks_[0]->TakeShares(), SizeIs(2));
}

TEST_F(RankMeetingTest, ASecondProcessOfARankIsRefused) {
  JoinAll(2);
  ranks_[1]->Deliver(Measured(1));
  ASSERT_EQ(Decided(*ranks_[1]), Outcome::kReported);  // So rank 1 has been met, and stays.
  const auto twin = Join(1);
  twin->End();
  AwaitOver(*twin);
  twin->Deliver(Measured(1));
  EXPECT_EQ(Decided(*twin), Outcome::kReport);
  EXPECT_THAT(twin->Remarks().front(), HasSubstr("another rank 1"));
  ranks_[0]->End();
  EndAndDeliver(0);
  EXPECT_EQ(Decided(*ranks_[0]), Outcome::kReport);
}

TEST_F(RankMeetingTest, NothingIsLeftInTheFolder) {
  JoinAll(2);
  for (auto& rank : ranks_) rank->End();
  EndAndDeliver(0);
  EndAndDeliver(1);
  EXPECT_EQ(Reporter(), 0);
  ranks_.clear();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() / "ranks"));
}

TEST(MeetingPointTest, AnAddressIsCheckedBeforeAnythingRuns) {
  const RankPlace place{.rank = 0, .size = 2, .launcher = "test", .job = "test:2"};
  for (const char* wrong : {"host", ":1", "host:0", "host:x", "host:70000"}) {
    const auto point = MeetingPoint::Of(place, [wrong](const std::string& name) {
      return name == "ZEUS_RANKS_ADDRESS" ? std::optional<std::string>(wrong) : std::nullopt;
    });
    ASSERT_FALSE(point.ok()) << wrong;
    EXPECT_THAT(point.error().message, HasSubstr("ZEUS_RANKS_ADDRESS"));
  }
  const auto nowhere = MeetingPoint::Of(place, [](const std::string&) { return std::nullopt; });
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().message, HasSubstr("ZEUS_RANKS_DIR"));
}

}  // namespace rank_meeting_test
}  // namespace zeus
