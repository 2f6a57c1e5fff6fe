#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/job/event_replay.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"

namespace zeus {

// A service on jobs in memory, and one job "job" to do things to.
class LocalJobServiceTest : public ::testing::Test {
 protected:
  static JobSpec Spec() {
    return {.id = "job",
            .batch_sizes = {8, 16, 32, 64},
            .default_batch_size = 32,
            .eta = 1.0,
            .target_metric = 0.9,
            .max_epochs = 10,
            .policy = "zeus",
            .seed = 1,
            .max_power = Watts(250),
            .gpu_model = "V100",
            .lease = Seconds(60)};
  }

  void Register(const JobSpec& spec) {
    const auto registered = service_.Register(spec);
    ASSERT_TRUE(registered.ok()) << registered.error().message;
  }
  StartedTrial Start(TrialRequest request = {}) {
    request.job_id = "job";
    auto started = service_.StartTrial(request);
    EXPECT_TRUE(started.ok()) << started.error().message;
    return started.ok() ? started.value() : StartedTrial{};
  }
  // Epochs cost 10 J each.
  Result<ReportAnswer> ReportEpoch(std::int64_t trial, int epoch, double metric) {
    return service_.Report({.job_id = "job",
                            .trial = trial,
                            .epoch = epoch,
                            .time = Seconds(epoch),
                            .energy = Joules(10.0 * epoch),
                            .metric = metric});
  }
  Trial Converge(std::int64_t trial, int epochs) {
    const auto answer = ReportEpoch(trial, epochs, 0.95);
    EXPECT_TRUE(answer.ok() && answer.value().converged);
    return answer.ok() ? answer.value().trial : Trial{};
  }
  // Nothing was lost or counted twice.
  void ExpectBeliefIsThatOfTheEvents() {
    const auto job = service_.GetJob("job");
    const auto events = service_.ListEvents("job", 0, 1'000'000);
    ASSERT_TRUE(job.ok() && events.ok());
    const auto replayed = ReplayPolicy(job.value(), events.value());
    ASSERT_TRUE(replayed.ok()) << replayed.error().message;
    EXPECT_EQ(replayed.value().dump(), job.value().policy_state.dump());
  }

  VirtualClock clock_;
  MemoryRepository repository_;
  LocalJobService service_{repository_, clock_};
};

}  // namespace zeus
