#include "zeus/job/grouped_savings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "zeus/base/wall_time_text.h"
#include "zeus/job/testing/local_job_service_fixture.h"

namespace zeus {
namespace grouped_savings_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace literals;
using namespace std::chrono_literals;

// Three jobs of two teams. Each has three undisturbed runs of about 100 J, and then a run of about
// 60 J every ten days, so that they spread over several months.
class GroupedSavingsTest : public LocalJobServiceTest {
 protected:
  GroupedSavingsTest() {
    Add("cat", "vision", 60);
    Add("dog", "vision", 80);
    Add("word", "speech", 50);
    for (const char* id : {"cat", "dog", "word"})
      jobs_.push_back(overviews_.Of(service_, service_.GetJob(id).value(), id).value());
  }

  void Add(const std::string& id, const std::string& team, double energy) {
    JobSpec spec = Spec();
    spec.id = id;
    spec.labels = {{"team", team}};
    ASSERT_TRUE(service_.Register(spec).ok());
    for (const double joules : {98.0, 103.0, 99.0}) Run(id, true, joules);
    for (int i = 0; i < 9; ++i) Run(id, false, energy - 2 + i % 5);
  }

  void Run(const std::string& id, bool baseline, double joules) {
    clock_.Advance(baseline ? Seconds(600) : Seconds(240h));
    const auto started =
        service_.StartTrial({.job_id = id, .gpu_model = "V100", .baseline = baseline});
    ASSERT_TRUE(started.ok());
    ASSERT_TRUE(service_
                    .Report({.job_id = id,
                             .trial = started.value().trial.number,
                             .epoch = 2,
                             .time = Seconds(joules / 10),
                             .energy = Joules(joules),
                             .metric = 1.0,
                             .undisturbed = baseline})
                    .ok());
  }

  GroupedSavings By(const char* grouping, const SavingsPeriod& period = {}) {
    return GroupSavings(jobs_, ParseSavingsGrouping(grouping).value(), period);
  }

  JobOverviews overviews_;
  std::vector<JobOverviews::Overview> jobs_;
};

TEST_F(GroupedSavingsTest, AJobAloneHasItsOwnSavingsToTheDigit) {
  const GroupedSavings grouped = By("job");
  ASSERT_EQ(grouped.groups.size(), 3U);
  for (std::size_t i = 0; i < grouped.groups.size(); ++i) {
    const SavingsGroup& group = grouped.groups[i];
    const JobSavings& savings = jobs_[i]->savings;
    EXPECT_EQ(group.job, savings.job_id);
    EXPECT_NEAR(group.sums.energy, savings.saved->energy.total, 1e-9);
    EXPECT_NEAR(group.sums.energy_sigma, savings.saved->energy.total_sigma, 1e-9);
    EXPECT_NEAR(group.sums.energy_percent.value(), savings.saved->energy.percent, 1e-9);
    EXPECT_NEAR(group.sums.energy_percent_sigma, savings.saved->energy.percent_sigma, 1e-9);
    EXPECT_NEAR(group.sums.time, savings.saved->time.total, 1e-9);
    EXPECT_NEAR(group.sums.time_sigma, savings.saved->time.total_sigma, 1e-9);
  }
}

TEST_F(GroupedSavingsTest, TeamsSumUpTheirJobs) {
  const GroupedSavings grouped = By("team");
  ASSERT_EQ(grouped.groups.size(), 2U);
  EXPECT_THAT(grouped.groups[0].labels, ElementsAre("speech"));
  EXPECT_THAT(grouped.groups[1].labels, ElementsAre("vision"));
  const SpanSavings& vision = grouped.groups[1].sums;
  const SavedAmount cat = jobs_[0]->savings.saved->energy;
  const SavedAmount dog = jobs_[1]->savings.saved->energy;
  EXPECT_EQ(vision.jobs, 2);
  EXPECT_NEAR(vision.energy, cat.total + dog.total, 1e-9);
  EXPECT_NEAR(vision.energy_sigma, std::hypot(cat.total_sigma, dog.total_sigma), 1e-9);
  EXPECT_NEAR(*vision.energy_percent, (cat.percent + dog.percent) / 2, 1e-9)
      << "both would have taken as much undisturbed";
}

TEST_F(GroupedSavingsTest, EveryGroupingSumsUpToTheTotal) {
  for (const char* grouping : {"job", "month", "team", "team,month", "job,month", "colour"}) {
    const GroupedSavings grouped = By(grouping);
    double energy = 0;
    int recurrences = 0;
    for (const SavingsGroup& group : grouped.groups) {
      energy += group.sums.energy;
      recurrences += group.sums.recurrences;
    }
    EXPECT_NEAR(energy, grouped.total.energy, 1e-9) << grouping;
    EXPECT_EQ(recurrences, 27) << grouping;
  }
}

TEST_F(GroupedSavingsTest, MonthsAreThoseInWhichRecurrencesEnded) {
  const GroupedSavings grouped = By("month");
  for (const SavingsGroup& group : grouped.groups) {
    EXPECT_THAT(ToText(group.sums.from), HasSubstr(group.month));
    EXPECT_LE(group.sums.recurrences, 4) << "a run every ten days";
  }
  EXPECT_GE(grouped.groups.size(), 8U);
}

TEST_F(GroupedSavingsTest, APeriodLeavesOutWhatEndedElsewhen) {
  const std::string month = By("month").groups[1].month;
  const WallTime from = ParseDate(month).value();
  const GroupedSavings one = By("job", {.from = from, .until = from + std::chrono::days(28)});
  EXPECT_GE(one.total.recurrences, 2);
  EXPECT_LE(one.total.recurrences, 4);
  EXPECT_TRUE(By("job", {.from = clock_.WallNow() + 1h}).groups.empty());
}

TEST_F(GroupedSavingsTest, JobsWithoutTheLabelAreTogether) {
  const GroupedSavings grouped = By("colour");
  ASSERT_EQ(grouped.groups.size(), 1U);
  EXPECT_THAT(grouped.groups[0].labels, ElementsAre(""));
}

TEST(SavingsGroupingTest, MistakesAreSaid) {
  for (const char* text : {"", "team,", "job,job", "team,team"})
    EXPECT_FALSE(ParseSavingsGrouping(text).ok()) << text;
}

TEST(SavingsGroupingTest, DatesAreMonthsOrDays) {
  EXPECT_EQ(ToText(ParseDate("2026-11").value()), "2026-11-01T00:00:00Z");
  EXPECT_EQ(ToText(ParseDate("2024-02-29").value()), "2024-02-29T00:00:00Z");
  for (const char* text : {"", "2026", "2026-13", "2026-02-30", "2026-1-1", "26-11-01x", "+026-11"})
    EXPECT_FALSE(ParseDate(text).ok()) << text;
}

}  // namespace grouped_savings_test
}  // namespace zeus
