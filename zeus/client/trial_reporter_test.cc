#include "zeus/client/trial_reporter.h"

#include <gmock/gmock.h>

#include "zeus/client/testing/hanging_server.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"
#include "zeus/job/testing/flaky_job_service.h"

namespace zeus {
namespace trial_reporter_test {

using namespace std::chrono_literals;
using zeus::testing::FlakyJobService;

class TrialReporterTest : public ::testing::Test {
 protected:
  TrialReporterTest() {
    JobSpec spec{.id = "job", .batch_sizes = {32}, .default_batch_size = 32};
    spec.target_metric = 0.9;
    spec.max_power = Watts(250);
    spec.gpu_model = "V100";
    EXPECT_TRUE(service_.Register(spec).ok());
    trial_ = service_.StartTrial({.job_id = "job", .lease = Seconds(30)}).value().trial;
    reporter_.emplace(flaky_, clock_, trial_, Seconds(30), TrialReporter::Thread::kNone);
  }

  TrialReport Epoch(int epoch, double metric) {
    return {.job_id = "job",
            .trial = trial_.number,
            .epoch = epoch,
            .time = Seconds(epoch),
            .energy = Joules(100.0 * epoch),
            .metric = metric};
  }

  VirtualClock clock_;
  MemoryRepository repository_;
  LocalJobService service_{repository_, clock_};
  FlakyJobService flaky_{service_};
  Trial trial_;
  std::optional<TrialReporter> reporter_;
};

TEST_F(TrialReporterTest, ReportsWaitWhileTheServiceIsAwayAndAreSentInOrder) {
  flaky_.away = true;
  reporter_->Push(Epoch(1, 0.1));
  reporter_->Push(Epoch(2, 0.95));
  reporter_->Step();
  EXPECT_TRUE(reporter_->trouble());
  EXPECT_FALSE(reporter_->answer());
  EXPECT_FALSE(reporter_->Flush(1s));
  flaky_.away = false;
  EXPECT_TRUE(reporter_->Flush(60s));
  EXPECT_FALSE(reporter_->trouble());
  ASSERT_TRUE(reporter_->answer());
  EXPECT_TRUE(reporter_->answer()->converged);
  EXPECT_EQ(service_.GetTrial("job", trial_.number).value().epochs, 2);
}

TEST_F(TrialReporterTest, AHeartbeatComesThreeTimesPerLease) {
  for (int second = 0; second < 31; ++second) {
    reporter_->Step();
    clock_.Advance(1s);
  }
  EXPECT_EQ(flaky_.heartbeats, 3);
}

TEST_F(TrialReporterTest, AfterTheWordToStopNothingIsSent) {
  reporter_->Push(Epoch(1, 0.95));
  reporter_->Step();
  reporter_->Push(Epoch(2, 0.97));
  EXPECT_TRUE(reporter_->Flush(1s));
  EXPECT_EQ(service_.GetTrial("job", trial_.number).value().epochs, 1);
}

TEST_F(TrialReporterTest, ATrialThatSomebodyElseEndedIsRefused) {
  ASSERT_TRUE(service_.Delete("job").ok());
  reporter_->Push(Epoch(1, 0.1));
  reporter_->Step();
  ASSERT_TRUE(reporter_->refusal());
  EXPECT_EQ(reporter_->refusal()->code, ErrorCode::kNotFound);
}

TEST_F(TrialReporterTest, TheEndOfATrialIsSentAfterItsReports) {
  flaky_.away = true;
  reporter_->Push(Epoch(1, 0.1));
  reporter_->Push(
      TrialEnd{.job_id = "job", .trial = trial_.number, .status = TrialStatus::kStopped});
  EXPECT_FALSE(reporter_->Flush(1s));
  EXPECT_TRUE(reporter_->waiting_since());
  flaky_.away = false;
  EXPECT_TRUE(reporter_->Flush(60s));
  const Trial ended = service_.GetTrial("job", trial_.number).value();
  EXPECT_EQ(ended.status, TrialStatus::kStopped);
  EXPECT_EQ(ended.epochs, 1);
  // An ended trial gets no heartbeats, which would be refused.
  clock_.Advance(60s);
  reporter_->Step();
  EXPECT_EQ(flaky_.heartbeats, 0);
  EXPECT_FALSE(reporter_->refusal());
}

TEST_F(TrialReporterTest, AReportAfterARefusedHeartbeatIsAnsweredWithHowTheTrialEnded) {
  ASSERT_TRUE(service_
                  .EndTrial({.job_id = "job",
                             .trial = trial_.number,
                             .status = TrialStatus::kFailed,
                             .reason = "ended by an administrator"})
                  .ok());
  clock_.Advance(20s);
  reporter_->Step();
  ASSERT_TRUE(reporter_->refusal());
  EXPECT_EQ(reporter_->refusal()->code, ErrorCode::kConflict);
  reporter_->Push(Epoch(1, 0.1));
  EXPECT_TRUE(reporter_->Flush(1s));
  ASSERT_TRUE(reporter_->answer());
  EXPECT_TRUE(reporter_->answer()->stop);
  EXPECT_EQ(reporter_->answer()->message, "ended by an administrator");
}

TEST_F(TrialReporterTest, ItsEndCancelsACallThatHangs) {
  zeus::testing::HangingJobService hanging(service_);
  SystemClock clock;
  {
    TrialReporter reporter(hanging, clock, trial_, Seconds(30));
    reporter.Push(Epoch(1, 0.1));
    hanging.server().AwaitClient();
    EXPECT_FALSE(reporter.Flush(0s));
    EXPECT_EQ(hanging.returned_report_calls(), 0);
  }
  EXPECT_EQ(hanging.returned_report_calls(), 1);
}

}  // namespace trial_reporter_test
}  // namespace zeus
