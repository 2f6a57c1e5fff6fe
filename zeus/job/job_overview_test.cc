#include "zeus/job/job_overview.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numeric>

#include "zeus/job/testing/local_job_service_fixture.h"

namespace zeus {
namespace job_overview_test {

using namespace literals;
using namespace std::chrono_literals;

// Runs of the default take about 100 J; runs of the job, which follow, about 60 J. One run ends
// every ten minutes.
class JobOverviewTest : public LocalJobServiceTest {
 protected:
  JobOverviewTest() {
    Register(Spec());
    for (const Joules energy : {98_J, 103_J, 99_J}) Run(true, energy);
    for (int i = 0; i < 12; ++i) Run(false, Joules(58.0 + i % 5));
  }

  void Run(bool baseline, Joules energy) {
    clock_.Advance(10min);
    const Trial trial = Start({.gpu_model = "V100", .baseline = baseline}).trial;
    const auto answer = service_.Report({.job_id = "job",
                                         .trial = trial.number,
                                         .epoch = 2,
                                         .time = Seconds(energy.value() / 10),
                                         .energy = energy,
                                         .metric = 1.0,
                                         .undisturbed = baseline});
    ASSERT_TRUE(answer.ok() && answer.value().converged);
  }

  Job GetJob() { return service_.GetJob("job").value(); }
  JobOverviews::Overview Overview() { return overviews_.Of(service_, GetJob(), "job").value(); }

  JobOverviews overviews_;
};

TEST_F(JobOverviewTest, AnOverviewIsMadeOncePerEvent) {
  const auto first = Overview();
  EXPECT_EQ(Overview(), first);
  const Trial trial = Start({.gpu_model = "V100"}).trial;
  const auto second = Overview();
  EXPECT_NE(second, first);
  ASSERT_EQ(second->running.size(), 1U);
  EXPECT_EQ(second->running[0].number, trial.number);
  EXPECT_NE(second->running[0].why, "");
  EXPECT_EQ(second->latest->number, trial.number);
}

TEST_F(JobOverviewTest, ItHoldsWhatTheServiceSays) {
  const auto overview = Overview();
  const JobSavings savings = service_.GetSavings({.job_id = "job"}).value();
  ASSERT_TRUE(overview->savings.saved && savings.saved);
  EXPECT_EQ(overview->savings.saved->energy.total, savings.saved->energy.total);
  EXPECT_EQ(overview->arms.next->why, service_.GetArms("job", "").value().next->why);
  EXPECT_EQ(overview->recurrences.size(), 15U);
  EXPECT_EQ(overview->charged.size(), 12U);
}

TEST_F(JobOverviewTest, ASmallCacheKeepsTheLatestJob) {
  JobOverviews small(1);
  const auto first = small.Of(service_, GetJob(), "job").value();
  EXPECT_EQ(small.Of(service_, GetJob(), "job").value(), first);
  JobSpec spec = Spec();
  spec.id = "other";
  ASSERT_TRUE(service_.Register(spec).ok());
  ASSERT_TRUE(small.Of(service_, service_.GetJob("other").value(), "other").ok());
  EXPECT_NE(small.Of(service_, GetJob(), "job").value(), first);
}

TEST_F(JobOverviewTest, TheSavingsOfAllSpansSumUpToThoseOfTheJob) {
  const auto overview = Overview();
  std::vector<WallTime> bounds;
  for (int i = 0; i < 7; ++i) bounds.push_back(overview->job.created_at + i * 30min);
  const std::vector<JobOverviews::Overview> jobs{overview};
  double energy = 0;
  double own_variance = 0;
  double baseline_sigma = 0;
  int recurrences = 0;
  const JobSavings& savings = overview->savings;
  for (const SpanSavings& span : SavingsBetween(jobs, bounds)) {
    energy += span.energy;
    recurrences += span.recurrences;
    const double from_baseline = span.recurrences * savings.baseline.energy.sigma.value();
    baseline_sigma += from_baseline;
    own_variance += span.energy_sigma * span.energy_sigma - from_baseline * from_baseline;
    EXPECT_TRUE(span.unknown.empty());
  }
  EXPECT_EQ(recurrences, 12);
  EXPECT_NEAR(energy, savings.saved->energy.total, 1e-9);
  EXPECT_NEAR(std::hypot(baseline_sigma, std::sqrt(own_variance)),
              savings.saved->energy.total_sigma, 1e-9);
}

TEST_F(JobOverviewTest, ASpanCountsWhatEndedInIt) {
  const auto overview = Overview();
  const WallTime end = *overview->latest->ended_at;
  const std::vector<JobOverviews::Overview> jobs{overview};
  const std::vector<WallTime> bounds{end - 10min, end, end + 1s};
  const auto spans = SavingsBetween(jobs, bounds);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].recurrences, 1);
  EXPECT_EQ(spans[1].recurrences, 1);
  EXPECT_EQ(spans[1].charged, overview->latest->energy);
  EXPECT_NEAR(spans[1].energy, 100 - overview->latest->energy.value(), 1e-9);
}

TEST_F(JobOverviewTest, JobsWithoutABaselineAreNamed) {
  JobSpec spec = Spec();
  spec.id = "bare";
  ASSERT_TRUE(service_.Register(spec).ok());
  const auto started = service_.StartTrial({.job_id = "bare"});
  ASSERT_TRUE(service_
                  .Report({.job_id = "bare",
                           .trial = started.value().trial.number,
                           .epoch = 1,
                           .time = 1s,
                           .energy = 10_J,
                           .metric = 1.0})
                  .ok());
  const std::vector<JobOverviews::Overview> jobs{
      overviews_.Of(service_, service_.GetJob("bare").value(), "bare").value()};
  const std::vector<WallTime> bounds{clock_.WallNow() - 1s, clock_.WallNow() + 1s};
  const SpanSavings span = SavingsBetween(jobs, bounds).front();
  EXPECT_EQ(span.jobs, 0);
  EXPECT_EQ(span.unknown, std::vector<std::string>{"bare"});
}

}  // namespace job_overview_test
}  // namespace zeus
