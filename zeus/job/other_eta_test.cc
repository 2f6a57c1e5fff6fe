#include "zeus/job/other_eta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "zeus/job/testing/local_job_service_fixture.h"

namespace zeus {
namespace other_eta_test {

using ::testing::HasSubstr;
using namespace literals;

// A job with eta 1 for which batch size 32 takes less energy and 16 less time.
class OtherEtaTest : public LocalJobServiceTest {
 protected:
  OtherEtaTest() {
    JobSpec spec = Spec();
    spec.policy = "knowledge_gradient";
    spec.batch_sizes = {16, 32, 64};
    Register(spec);
    for (int i = 0; i < 6; ++i) {
      Run(16, Seconds(10), Joules(2000.0 + 20 * i));
      Run(32, Seconds(30), Joules(1000.0 + 10 * i));
    }
  }

  void Run(int batch_size, Seconds time, Joules energy) {
    const Trial trial = Start({.gpu_model = "V100", .batch_size = batch_size}).trial;
    const auto answer = service_.Report({.job_id = "job",
                                         .trial = trial.number,
                                         .epoch = 5,
                                         .time = time,
                                         .energy = energy,
                                         .metric = 1.0,
                                         .power_limit = 200_W});
    ASSERT_TRUE(answer.ok() && answer.value().converged);
  }

  Result<OtherEta> Under(double eta) {
    return ReplayUnderEta(service_.GetJob("job").value(),
                          service_.ListTrials("job", {.limit = 1000}).value(), "", eta);
  }
};

TEST_F(OtherEtaTest, TimeCountsWhereEnergyDoesNot) {
  EXPECT_EQ(Under(1.0).value().arms.best_batch_size, 32);
  const OtherEta other = Under(0.0).value();
  EXPECT_EQ(other.arms.best_batch_size, 16);
  EXPECT_EQ(other.own_best, 32);
  ASSERT_TRUE(other.energy && other.time);
  EXPECT_NEAR(other.time->percent, 100 * (10.0 / 30 - 1), 1e-9);
  EXPECT_NEAR(other.energy->percent, 100 * (2050.0 / 1025 - 1), 1e-9);
  EXPECT_GT(other.energy->sigma.value(), 0);
  // Costs are those under the other eta: 250 W for 10 s.
  EXPECT_NEAR(other.measured[0].cost.mean, 2500, 1e-9);
}

TEST_F(OtherEtaTest, TheJobsOwnEtaGivesItsOwnBeliefs) {
  const OtherEta other = Under(1.0).value();
  const JobArms arms = service_.GetArms("job", "").value();
  ASSERT_EQ(other.arms.arms.size(), arms.arms.size());
  for (std::size_t i = 0; i < arms.arms.size(); ++i)
    EXPECT_EQ(other.arms.arms[i].cost, arms.arms[i].cost);
  EXPECT_TRUE(other.notes.empty());
  EXPECT_FALSE(other.energy);
}

TEST_F(OtherEtaTest, ItSaysWhatCannotBeKnown) {
  const Trial trial = Start({.gpu_model = "V100", .batch_size = 32}).trial;
  ASSERT_TRUE(ReportEpoch(trial.number, 2, 0.1).ok());
  ASSERT_TRUE(
      service_.EndTrial({.job_id = "job", .trial = trial.number, .status = TrialStatus::kStopped})
          .ok());
  const auto notes = Under(0.5).value().notes;
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_THAT(notes[0], HasSubstr("power limits are those that were chosen for eta 1"));
  EXPECT_THAT(notes[1], HasSubstr("1 run was stopped early"));
  EXPECT_THAT(notes[2], HasSubstr("Batch size 64 never ran"));
}

TEST_F(OtherEtaTest, OnlyWeightsAreEtas) {
  for (const double eta : {-0.1, 1.1, std::nan("")})
    EXPECT_THAT(Under(eta).error().message, HasSubstr("eta: must be between 0 and 1"));
}

}  // namespace other_eta_test
}  // namespace zeus
