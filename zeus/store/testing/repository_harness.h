#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "zeus/job/job_repository.h"
#include "zeus/store/open_repository.h"

namespace zeus::testing {

// An empty database to test.
struct RepositoryHarness {
  std::shared_ptr<void> database;  // Keeps the database alive.
  std::function<Result<Store>()> open;
};

struct RepositoryCase {
  std::string name;  // Letters and digits: the end of the tests' names.
  std::function<RepositoryHarness()> make;
  bool shared = true;  // Two stores that are opened have the same content.
};

struct NameOfRepositoryCase {
  std::string operator()(const ::testing::TestParamInfo<RepositoryCase>& info) const {
    return info.param.name;
  }
};

inline JobSpec ASpec(const std::string& id) {
  return {.id = id,
          .batch_sizes = {32, 64, 128},
          .default_batch_size = 64,
          .policy = "zeus",
          .max_power = Watts(300.0),
          .gpu_model = "V100"};
}

inline Job AJob(const std::string& id) {
  return {.spec = ASpec(id),
          .seed = 0xFFFF'FFFF'FFFF'FFFFU,
          .created_at = WallTime(std::chrono::microseconds(1'700'000'000'123'456))};
}

inline Trial ATrial(const std::string& job_id, std::int64_t number) {
  return {.job_id = job_id,
          .number = number,
          .recurrence = number - 1,
          .batch_size = 64,
          .gpu_model = "V100",
          .max_power = Watts(300.0),
          .started_at = WallTime(std::chrono::seconds(1000)),
          .lease = Seconds(60.0),
          .lease_until = WallTime(std::chrono::seconds(1060))};
}

inline JobEvent AnEvent(const std::string& job_id, std::int64_t sequence) {
  return {.job_id = job_id,
          .sequence = sequence,
          .at = WallTime(std::chrono::seconds(1000)),
          .kind = EventKind::kTrialStarted,
          .trial = sequence,
          .detail = {{"batch_size", 64}}};
}

// The start of every test of jobs: an empty repository, opened.
class RepositoryTest : public ::testing::TestWithParam<RepositoryCase> {
 protected:
  void SetUp() override {
    harness_ = GetParam().make();
    auto opened = harness_.open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    repository_ = std::move(opened.value().jobs);
  }

  Status Insert(const Job& job) {
    return repository_->Write([&](JobTransaction& change) { return change.InsertJob(job); });
  }
  Status Insert(const Trial& trial) {
    return repository_->Write([&](JobTransaction& change) { return change.InsertTrial(trial); });
  }
  // One more trial and event of a job, and both counters: what a lost update would show in.
  static Status CountUp(JobRepository& repository, const std::string& id) {
    return repository.Write([&](JobTransaction& change) -> Status {
      ZEUS_TRY(Job job, change.LockJob(id));
      ++job.trials;
      ++job.events;
      job.policy_state = {{"count", job.trials}};
      ZEUS_RETURN_IF_ERROR(change.InsertTrial(ATrial(id, job.trials)));
      ZEUS_RETURN_IF_ERROR(change.AppendEvent(AnEvent(id, job.events)));
      return change.UpdateJob(job);
    });
  }
  // That so many changes of CountUp() are there, and nothing else.
  static void ExpectCount(JobRepository& repository, const std::string& id, std::int64_t count) {
    const auto job = repository.FindJob(id);
    ASSERT_TRUE(job.ok()) << job.error().message;
    EXPECT_EQ(job.value().trials, count);
    EXPECT_EQ(job.value().events, count);
    EXPECT_EQ(job.value().policy_state, count == 0 ? Json() : Json({{"count", count}}));
    const auto trials = repository.ListTrials(id, {.limit = 1'000'000});
    ASSERT_TRUE(trials.ok()) << trials.error().message;
    EXPECT_EQ(trials.value().size(), static_cast<std::size_t>(count));
    const auto events = repository.ListEvents(id, 0, 1'000'000);
    ASSERT_TRUE(events.ok()) << events.error().message;
    EXPECT_EQ(events.value().size(), static_cast<std::size_t>(count));
  }

  RepositoryHarness harness_;
  std::unique_ptr<JobRepository> repository_;
};

}  // namespace zeus::testing
