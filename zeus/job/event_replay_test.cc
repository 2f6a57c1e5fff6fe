#include "zeus/job/event_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"

namespace zeus {
namespace event_replay_test {

using ::testing::HasSubstr;
using namespace literals;

class EventReplayTest : public ::testing::Test {
 protected:
  EventReplayTest() {
    EXPECT_TRUE(service_
                    .Register({.id = "job",
                               .batch_sizes = {8, 16},
                               .default_batch_size = 8,
                               .policy = "zeus",
                               .max_power = 250_W,
                               .gpu_model = "V100"})
                    .ok());
    for (int run = 1; run <= 6; ++run) {
      EXPECT_TRUE(service_.StartTrial({.job_id = "job"}).ok());
      EXPECT_TRUE(service_
                      .Report({.job_id = "job",
                               .trial = run,
                               .epoch = 2 + run % 2,
                               .time = Seconds(run),
                               .energy = Joules(100.0 + run),
                               .metric = 1.0})
                      .ok());
    }
    job_ = service_.GetJob("job").value();
    events_ = service_.ListEvents("job", 0, 1000).value();
  }

  VirtualClock clock_;
  MemoryRepository repository_;
  LocalJobService service_{repository_, clock_};
  Job job_;
  std::vector<JobEvent> events_;
};

TEST_F(EventReplayTest, EventsGiveWhatIsStored) {
  EXPECT_EQ(ReplayPolicy(job_, events_).value().dump(), job_.policy_state.dump());
}

TEST_F(EventReplayTest, ALostEventIsNoticed) {
  events_.erase(events_.begin() + 4);
  EXPECT_THAT(ReplayPolicy(job_, events_).error().message, HasSubstr("event 5 is missing"));
}

TEST_F(EventReplayTest, AResultThatWasCountedTwiceIsNoticed) {
  JobEvent again = events_.back();
  again.sequence += 1;
  events_.push_back(again);
  EXPECT_NE(ReplayPolicy(job_, events_).value().dump(), job_.policy_state.dump());
}

TEST_F(EventReplayTest, ABatchSizeThatTheBeliefDoesNotGiveIsNoticed) {
  events_[1].detail["batch_size"] = 16;
  EXPECT_THAT(ReplayPolicy(job_, events_).error().message, HasSubstr("event 2 (trial_started)"));
}

}  // namespace event_replay_test
}  // namespace zeus
