#include "zeus/optimizer/batch_size/job_prior.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/knowledge_gradient_policy.h"

namespace zeus {
namespace job_prior_test {

JobKind Kind() {
  return {.batch_sizes = {16, 32, 64, 128}, .default_batch_size = 128, .max_epochs = 50};
}

// Twenty jobs of the kind that need `epochs[i]` epochs with batch size i.
PriorBook BookOf(std::initializer_list<int> epochs, double joules_per_epoch = 100) {
  PriorBook book;
  for (int job = 0; job < 20; ++job) {
    const std::size_t kind = book.AddJob(Kind());
    std::size_t i = 0;
    for (const int needed : epochs)
      book.Add(kind, {.gpu_model = "V100",
                      .batch_size = Kind().batch_sizes[i++],
                      .converged = true,
                      .epochs = needed,
                      .epoch_cost = Joules(joules_per_epoch)});
  }
  return book;
}

PolicySpec Spec() {
  return {.batch_sizes = Kind().batch_sizes,
          .default_batch_size = Kind().default_batch_size,
          .max_epochs = Kind().max_epochs};
}

KnowledgeGradientPolicy PolicyWith(JobPrior prior) {
  return KnowledgeGradientPolicy(Spec(), {.prior = std::move(prior)});
}

// Runs one recurrence of a job that needs `epochs[i]` epochs with batch size i at 100 J each.
// Returns the batch sizes of its tries.
std::vector<int> Recur(BatchSizePolicy& policy, std::int64_t recurrence,
                       std::initializer_list<int> epochs) {
  std::vector<int> tried;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const Choice choice =
        policy.Choose({.recurrence = recurrence, .attempt = attempt, .gpu_model = "V100"});
    tried.push_back(choice.batch_size);
    const PlannedRun run{.recurrence = recurrence,
                         .attempt = attempt,
                         .gpu_model = "V100",
                         .batch_size = choice.batch_size,
                         .role = choice.role};
    std::size_t index = 0;
    while (Kind().batch_sizes[index] != choice.batch_size) ++index;
    const int needed = *(epochs.begin() + index);
    const int bound = policy.EpochBudget(run, Joules(100));
    const int done = std::min(needed, std::max(bound, 1));
    policy.Observe({.run = run,
                    .converged = done == needed,
                    .epochs = done,
                    .cost = Joules(100.0 * done),
                    .recurrence_cost = Joules(100.0 * done),
                    .epoch_cost = Joules(100)});
    if (done == needed) break;
  }
  return tried;
}

TEST(JobPriorTest, ANewJobOfAKnownKindBeginsWithItsBestBatchSize) {
  KnowledgeGradientPolicy policy = PolicyWith(BookOf({30, 8, 12, 25}).For(Kind()));
  EXPECT_EQ(policy.Choose({.gpu_model = "V100"}),
            (Choice{.batch_size = 32, .role = RunRole::kExploiting}));
  EXPECT_THAT(policy.Explain({.gpu_model = "V100"}).why,
              testing::HasSubstr("which cost least in the 20 other jobs of this kind"));
}

TEST(JobPriorTest, AJobOfAnotherKindBeginsWithItsDefault) {
  JobKind other = Kind();
  other.max_epochs = 51;
  const JobPrior prior = BookOf({30, 8, 12, 25}).For(other);
  EXPECT_EQ(prior.jobs, 0);
  EXPECT_EQ(PolicyWith(prior).Choose({.gpu_model = "V100"}).batch_size, 128);
}

TEST(JobPriorTest, WithoutEpochCostsTheDefaultIsTriedFirst) {
  JobPrior prior = BookOf({30, 8, 12, 25}).For(Kind());
  prior.epoch_costs.clear();
  EXPECT_EQ(PolicyWith(prior).Choose({.gpu_model = "V100"}).batch_size, 128);
}

TEST(JobPriorTest, AJobThatDiffersIsStoppedOnceAndGoesOnWithItsDefault) {
  KnowledgeGradientPolicy policy = PolicyWith(BookOf({30, 4, 12, 25}).For(Kind()));
  const auto differs = {50, 50, 12, 6};
  EXPECT_THAT(Recur(policy, 0, differs), testing::ElementsAre(32, 128))
      << "32 was to need 4 epochs and is stopped at 8";
  for (std::int64_t recurrence = 1; recurrence < 10; ++recurrence)
    Recur(policy, recurrence, differs);
  EXPECT_EQ(policy.Best("V100"), 128);
}

TEST(JobPriorTest, AnEpochThatCostsSomethingElseShowsAnotherJob) {
  KnowledgeGradientPolicy policy = PolicyWith(BookOf({30, 4, 12, 25}).For(Kind()));
  const Situation first{.gpu_model = "V100"};
  const PlannedRun run{.gpu_model = "V100", .batch_size = policy.Choose(first).batch_size};
  ASSERT_EQ(run.batch_size, 32);
  EXPECT_GT(policy.EpochBudget(run, Joules(140)), 4) << "in other jobs, an epoch cost 100 J";
  EXPECT_EQ(policy.EpochBudget(run, Joules(160)), 0);
  policy.Observe({.run = run, .epoch_cost = Joules(160)});
  EXPECT_EQ(policy.Choose({.attempt = 1, .gpu_model = "V100"}),
            (Choice{.batch_size = 128, .role = RunRole::kExploring}));
}

TEST(JobPriorTest, APolicyIsRestoredWithItsDoubtsAboutThePrior) {
  const JobPrior prior = BookOf({30, 4, 12, 25}).For(Kind());
  KnowledgeGradientPolicy policy = PolicyWith(prior);
  for (std::int64_t recurrence = 0; recurrence < 5; ++recurrence) {
    auto restored =
        KnowledgeGradientPolicy::Restore(Spec(), policy.Save(), {.prior = prior}).value();
    EXPECT_EQ(restored.Save(), policy.Save());
    const Situation situation{.recurrence = recurrence, .gpu_model = "V100"};
    EXPECT_EQ(restored.Choose(situation), policy.Choose(situation));
    EXPECT_EQ(restored.Explain(situation).why, policy.Explain(situation).why);
    Recur(policy, recurrence, {50, 50, 12, 6});
  }
}

TEST(JobPriorTest, ABookAndABeginningAreReadAsTheyWereWritten) {
  const PriorBook book = BookOf({30, 8, 12, 25});
  const PriorBook again = PriorBook::Restore(book.Save()).value();
  EXPECT_EQ(again.Save(), book.Save());
  const JobPrior prior = book.For(Kind());
  EXPECT_EQ(JobPriorFromJson(ToJson(prior), 4).value(), prior);
  EXPECT_EQ(again.For(Kind()), prior);
  EXPECT_NEAR(std::exp(prior.arms[1].mean), 8, 1e-9);
}

TEST(JobPriorTest, DamagedBooksAreRefused) {
  Json json = BookOf({30, 8, 12, 25}).Save();
  json["kinds"][0]["arms"][0][1] = -1;
  EXPECT_THAT(PriorBook::Restore(json).error().message, testing::HasSubstr("\"arms\""));
  json["format"] = "zeus.prior/2";
  EXPECT_THAT(PriorBook::Restore(json).error().message, testing::HasSubstr("zeus.prior/1"));
  EXPECT_FALSE(PriorBook::Restore(Json::array()).ok());
  EXPECT_FALSE(JobPriorFromJson(ToJson(BookOf({3, 3, 3, 3}).For(Kind())), 3).ok());
}

TEST(JobPriorTest, RunsOfUnknownBatchSizesTeachNothing) {
  PriorBook book;
  const std::size_t kind = book.AddJob(Kind());
  book.Add(kind, {.gpu_model = "V100", .batch_size = 17, .converged = true, .epochs = 5});
  EXPECT_EQ(book.For(Kind()).jobs, 0);
}

}  // namespace job_prior_test
}  // namespace zeus
