#include "zeus/server/job_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"

namespace zeus::server {
namespace job_feed_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace literals;
using namespace std::chrono_literals;

class JobFeedTest : public ::testing::Test {
 protected:
  JobFeedTest() { Register("mnist"); }

  void Register(const std::string& id) {
    ASSERT_TRUE(service_
                    .Register({.id = id,
                               .batch_sizes = {8, 16},
                               .default_batch_size = 8,
                               .max_power = 250_W,
                               .gpu_model = "V100"})
                    .ok());
  }
  // As Api does after every change of its own.
  void Start(const std::string& id) {
    ASSERT_TRUE(service_.StartTrial({.job_id = id}).ok());
    feed_.NoteChange(id);
  }
  std::string Next(std::string& seen, const std::string& name_space = "") {
    clock_.Advance(JobFeed::kLookPeriod);
    const auto text = feed_.After(name_space, seen);
    EXPECT_TRUE(text.ok());
    return text.ok() ? text.value() : "";
  }

  VirtualClock clock_;
  MemoryRepository repository_;
  LocalJobService service_{repository_, clock_};
  JobFeed feed_{service_, clock_, [this] { return ++entropy_; }};
  std::uint64_t entropy_ = 0;
};

TEST_F(JobFeedTest, AViewerBeginsWithWhatIsAndSeesWhatComes) {
  std::string seen;
  EXPECT_THAT(Next(seen), HasSubstr("event: current\n"));
  EXPECT_EQ(Next(seen), "");
  Start("mnist");
  const std::string text = Next(seen);
  EXPECT_THAT(text, StartsWith("id: " + seen + "\nevent: trial_started\ndata: {"));
  EXPECT_THAT(text, HasSubstr(R"("job_id":"mnist")"));
  EXPECT_EQ(Next(seen), "");
}

TEST_F(JobFeedTest, AViewerThatComesBackMissesNothing) {
  std::string seen;
  Next(seen);
  Start("mnist");
  std::string late = seen;
  Next(seen);
  Start("mnist");
  EXPECT_THAT(Next(seen), HasSubstr(R"("trial":2)"));
  const std::string both = Next(late);
  EXPECT_THAT(both, HasSubstr(R"("trial":1)"));
  EXPECT_THAT(both, HasSubstr(R"("trial":2)"));
  EXPECT_EQ(late, seen);
}

TEST_F(JobFeedTest, NewAndDeletedJobsAreSeenWithoutANote) {
  std::string seen;
  Next(seen);
  // As another server on the same database does it.
  Register("bert");
  ASSERT_TRUE(service_.Delete("mnist").ok());
  clock_.Advance(JobFeed::kSweepPeriod);
  const std::string text = Next(seen);
  EXPECT_THAT(text, HasSubstr("event: job_created\n"));
  EXPECT_THAT(text, HasSubstr("event: job_deleted\ndata: {\"job_id\":\"mnist\"}\n"));
}

TEST_F(JobFeedTest, AnIdOfAnotherServerOrOneThatIsTooOldMeansAReset) {
  std::string foreign = "ffffffffffffffff-3";
  EXPECT_THAT(Next(foreign), HasSubstr("event: reset\n"));
  std::string old = foreign;
  for (std::size_t i = 0; i <= JobFeed::kMostEvents; ++i) Start("mnist");
  std::string current = foreign;
  Next(current);
  EXPECT_THAT(Next(old), HasSubstr("event: reset\n"));
  EXPECT_EQ(old, current);
  for (const char* text :
       {"x", "0000000000000001-", "0000000000000001--1", "0000000000000001-1x"}) {
    std::string malformed = text;
    EXPECT_THAT(Next(malformed), HasSubstr("event: reset\n")) << text;
  }
}

TEST_F(JobFeedTest, NameSpacesSeeOnlyTheirOwn) {
  Register("team/secret");
  std::string ours;
  std::string theirs;
  Next(ours);
  Next(theirs, "team");
  Start("team/secret");
  EXPECT_EQ(Next(ours), "");
  const std::string text = Next(theirs, "team");
  EXPECT_THAT(text, HasSubstr(R"("job_id":"secret")"));
  EXPECT_THAT(text, Not(HasSubstr("team/")));
}

TEST_F(JobFeedTest, WhatNobodyFollowsIsForgotten) {
  std::string seen;
  Next(seen);
  clock_.Advance(JobFeed::kForgottenAfter + 1s);
  EXPECT_THAT(Next(seen), HasSubstr("event: reset\n"));
}

}  // namespace job_feed_test
}  // namespace zeus::server
