#include "zeus/client/spooling_job_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/job/testing/flaky_job_service.h"
#include "zeus/job/testing/local_job_service_fixture.h"

namespace zeus {
namespace spooling_job_service_test {

using ::testing::HasSubstr;
using namespace literals;
using namespace std::chrono_literals;

class SpoolingJobServiceTest : public LocalJobServiceTest {
 protected:
  // As another process of the same user would have it.
  SpoolingJobService NewService(const std::string& where = "http://here") {
    return {flaky_, clock_, {.folder = folder(), .where = where, .start_timeout = 20s}};
  }
  std::filesystem::path folder() const { return directory_.path() / "kept"; }
  std::ptrdiff_t KeptTrials() const {
    std::ptrdiff_t count = 0;
    std::error_code error;
    for (const auto& file : std::filesystem::directory_iterator(folder(), error))
      if (file.path().extension() == ".trial") ++count;
    return count;
  }
  static TrialReport MakeReport(const Trial& trial, int epoch, double metric) {
    return {.job_id = "job",
            .trial = trial.number,
            .epoch = epoch,
            .time = Seconds(epoch),
            .energy = Joules(10.0 * epoch),
            .metric = metric};
  }

  zeus::testing::TemporaryDirectory directory_;
  zeus::testing::FlakyJobService flaky_{service_};
};

TEST_F(SpoolingJobServiceTest, ARunBeginsWithTheDefaultAfterABoundedWait) {
  flaky_.away = true;
  SpoolingJobService service = NewService();
  const TimePoint begun = clock_.Now();
  ASSERT_TRUE(service.Register(Spec()).ok());
  EXPECT_TRUE(service.offline());
  EXPECT_GT(flaky_.registrations, 3);
  EXPECT_GE(clock_.Now() - begun, 20s);
  EXPECT_LE(clock_.Now() - begun, 21s);
  const auto started = service.StartTrial({.job_id = "job", .gpu_model = "V100"});
  ASSERT_TRUE(started.ok());
  EXPECT_LE(clock_.Now() - begun, 21s);
  EXPECT_EQ(started.value().trial.batch_size, 32);
  EXPECT_LT(started.value().trial.number, 0);
  EXPECT_EQ(started.value().max_epochs, 10);
}

TEST_F(SpoolingJobServiceTest, ResultsOfARunWithoutTheServiceAreDeliveredByTheNextStart) {
  flaky_.away = true;
  {
    SpoolingJobService service = NewService();
    ASSERT_TRUE(service.Register(Spec()).ok());
    const Trial trial = service.StartTrial({.job_id = "job", .gpu_model = "V100"}).value().trial;
    EXPECT_FALSE(service.Report(MakeReport(trial, 1, 0.1)).value().stop);
    EXPECT_TRUE(service.Heartbeat("job", trial.number).ok());
    const auto answer = service.Report(MakeReport(trial, 2, 0.95));
    ASSERT_TRUE(answer.ok());
    EXPECT_TRUE(answer.value().stop && answer.value().converged);
    EXPECT_EQ(service.EndTrial({.job_id = "job", .trial = trial.number}).value().status,
              TrialStatus::kConverged);
  }
  EXPECT_EQ(KeptTrials(), 1);
  flaky_.away = false;
  SpoolingJobService elsewhere = NewService("http://elsewhere");
  ASSERT_TRUE(elsewhere.Register(Spec()).ok());
  EXPECT_EQ(KeptTrials(), 1);
  for (int start = 0; start < 2; ++start) {
    SpoolingJobService next = NewService();
    ASSERT_TRUE(next.Register(Spec()).ok());
    EXPECT_FALSE(next.offline());
    EXPECT_EQ(KeptTrials(), 0);
  }
  const auto trials = service_.ListTrials("job", {}).value();
  ASSERT_EQ(trials.size(), 1U);
  EXPECT_EQ(trials[0].status, TrialStatus::kConverged);
  EXPECT_EQ(trials[0].batch_size, 32);
  EXPECT_EQ(trials[0].energy, 20_J);
  EXPECT_EQ(service_.GetJob("job").value().least_cost, 20_J);
  ExpectBeliefIsThatOfTheEvents();
}

TEST_F(SpoolingJobServiceTest, AServiceThatIsBackGetsTheResultsAtTheEndOfTheRun) {
  flaky_.away = true;
  SpoolingJobService service = NewService();
  ASSERT_TRUE(service.Register(Spec()).ok());
  const Trial trial = service.StartTrial({.job_id = "job"}).value().trial;
  EXPECT_FALSE(service.Report(MakeReport(trial, 1, 0.1)).value().stop);
  flaky_.away = false;
  ASSERT_TRUE(service
                  .EndTrial({.job_id = "job",
                             .trial = trial.number,
                             .status = TrialStatus::kStopped,
                             .reason = "over"})
                  .ok());
  EXPECT_EQ(KeptTrials(), 0);
  EXPECT_EQ(service_.GetTrial("job", 1).value().status, TrialStatus::kStopped);
  EXPECT_EQ(service_.GetTrial("job", 1).value().reason, "over");
  // And the next run of the same process asks it again.
  EXPECT_GT(service.StartTrial({.job_id = "job"}).value().trial.number, 0);
  EXPECT_FALSE(service.offline());
}

TEST_F(SpoolingJobServiceTest, TheBatchSizeThatWasLastUsedStandsInForTheService) {
  JobSpec spec = Spec();
  spec.policy = "default";
  spec.default_batch_size = 16;
  {
    SpoolingJobService service = NewService();
    ASSERT_TRUE(service.Register(spec).ok());
    EXPECT_EQ(service.StartTrial({.job_id = "job"}).value().trial.batch_size, 16);
  }
  flaky_.away = true;
  SpoolingJobService service = NewService();
  spec.default_batch_size = 32;  // Known only here, and not what was used.
  ASSERT_TRUE(service.Register(spec).ok());
  EXPECT_EQ(service.StartTrial({.job_id = "job"}).value().trial.batch_size, 16);
  EXPECT_EQ(service.StartTrial({.job_id = "job", .baseline = true}).value().trial.batch_size, 32);
}

TEST_F(SpoolingJobServiceTest, AServiceThatGoesAwayBetweenRegistrationAndStartIsNoError) {
  SpoolingJobService service = NewService();
  ASSERT_TRUE(service.Register(Spec()).ok());
  flaky_.away = true;
  const auto started = service.StartTrial({.job_id = "job"});
  ASSERT_TRUE(started.ok());
  EXPECT_LT(started.value().trial.number, 0);
  EXPECT_TRUE(service.offline());
}

TEST_F(SpoolingJobServiceTest, TheLastReportOfATrialOfTheServiceIsDeliveredLater) {
  Trial trial;
  {
    SpoolingJobService service = NewService();
    ASSERT_TRUE(service.Register(Spec()).ok());
    trial = service.StartTrial({.job_id = "job"}).value().trial;
    EXPECT_TRUE(service.Report(MakeReport(trial, 1, 0.1)).ok());
    flaky_.away = true;
    EXPECT_FALSE(service.Report(MakeReport(trial, 2, 0.95)).ok());
    EXPECT_TRUE(service
                    .Keep(trial, MakeReport(trial, 2, 0.95),
                          {.job_id = "job", .trial = trial.number, .status = TrialStatus::kStopped})
                    .ok());
  }
  flaky_.away = false;
  SpoolingJobService next = NewService();
  ASSERT_TRUE(next.Register(Spec()).ok());
  EXPECT_EQ(service_.GetTrial("job", trial.number).value().status, TrialStatus::kConverged);
  EXPECT_EQ(KeptTrials(), 0);
  ExpectBeliefIsThatOfTheEvents();
}

TEST_F(SpoolingJobServiceTest, ResultsAreDeliveredToAJobWithAnotherSpec) {
  JobSpec known = Spec();
  known.policy = "knowledge_gradient";
  ASSERT_TRUE(service_.Register(known).ok());
  flaky_.away = true;
  {
    SpoolingJobService service = NewService();
    ASSERT_TRUE(service.Register(Spec()).ok());  // The run could not ask for the policy.
    const Trial trial = service.StartTrial({.job_id = "job"}).value().trial;
    EXPECT_TRUE(service.Report(MakeReport(trial, 2, 0.95)).value().converged);
  }
  flaky_.away = false;
  SpoolingJobService next = NewService();
  ASSERT_TRUE(next.Register(known).ok());
  EXPECT_EQ(KeptTrials(), 0);
  EXPECT_EQ(service_.GetTrial("job", 1).value().status, TrialStatus::kConverged);
}

TEST_F(SpoolingJobServiceTest, MistakesStayErrors) {
  SpoolingJobService service = NewService();
  ASSERT_TRUE(service.Register(Spec()).ok());
  JobSpec other = Spec();
  other.eta = 0.1;
  const auto refused = service.Register(other);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(service.StartTrial({.job_id = "nobody"}).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(service_.StartTrial({.job_id = "job", .batch_size = 7}).error().message,
              HasSubstr("7 is not one of job job's"));
}

}  // namespace spooling_job_service_test
}  // namespace zeus
