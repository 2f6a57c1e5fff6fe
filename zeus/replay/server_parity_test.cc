// Checks that a replay decides as the server does for the same job: run for run, epoch for epoch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {
namespace server_parity_test {

constexpr int kRecurrences = 40;
constexpr double kTarget = 0.5;

// Performs on a server the runs that a replay decided, and expects the server to decide the same.
class ServerRun {
 public:
  ServerRun(const ReplayJob& job, const std::string& policy, std::uint64_t seed) : job_(job) {
    const PolicySpec spec = job.Spec(policy, seed);
    const auto registered = service_.Register({.id = "job",
                                               .batch_sizes = spec.batch_sizes,
                                               .default_batch_size = spec.default_batch_size,
                                               .eta = job.eta,
                                               .target_metric = kTarget,
                                               .max_epochs = job.max_epochs,
                                               .policy = policy,
                                               .seed = seed,
                                               .max_power = job.max_power,
                                               .gpu_model = job.gpu_model});
    EXPECT_TRUE(registered.ok()) << registered.error().message;
  }

  void Follow(const ReplayedRecurrence& recurrence) {
    std::optional<std::int64_t> retried;
    for (std::size_t i = 0; i < recurrence.runs.size(); ++i) {
      const ReplayedRun& run = recurrence.runs[i];
      if (run.epochs == 0) continue;  // The server skips it by itself.
      Follow(run, retried, i + 1 < recurrence.runs.size());
      if (::testing::Test::HasFatalFailure()) return;
      retried = run.recurrence;
    }
  }

 private:
  void Follow(const ReplayedRun& run, std::optional<std::int64_t> retried, bool another) {
    const auto started = service_.StartTrial({.job_id = "job", .recurrence = retried});
    ASSERT_TRUE(started.ok()) << started.error().message;
    const Trial& trial = started.value().trial;
    ASSERT_EQ(std::tuple(trial.recurrence, trial.attempt, trial.batch_size, trial.role),
              std::tuple(run.recurrence, run.attempt, run.batch_size, run.role));
    for (int epoch = 1; epoch <= run.epochs; ++epoch) {
      const bool last = epoch == run.epochs;
      const auto answer = service_.Report(MakeReport(run, trial.number, epoch));
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      ASSERT_EQ(answer.value().stop, last) << "epoch " << epoch << " of " << run.epochs;
      if (!last) continue;
      ASSERT_EQ(answer.value().converged, run.converged);
      ASSERT_EQ(answer.value().retry, another);
    }
  }

  TrialReport MakeReport(const ReplayedRun& run, std::int64_t trial, int epoch) const {
    const ReplayArm& arm = job_.arms[run.arm];
    const Usage& one = std::ranges::find(arm.limits, run.limit, &LimitRecord::limit)->epoch;
    Usage used = (epoch - 1) * one;
    used += run.profiled_limits ? arm.profiling_epoch : one;
    return {.job_id = "job",
            .trial = trial,
            .epoch = epoch,
            .time = used.time,
            .energy = used.energy,
            .metric = run.converged && epoch == run.epochs ? 1.0 : 0.0,
            .epoch_energy = one.energy,
            .epoch_time = one.time};
  }

  const ReplayJob& job_;
  VirtualClock clock_;
  MemoryRepository repository_;
  LocalJobService service_{repository_, clock_};
};

class ServerParityTest
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

TEST_P(ServerParityTest, AReplayDecidesRunForRunAsTheServer) {
  const auto [gpu_model, label, policy] = GetParam();
  const auto jobs = CatalogueJobs(gpu_model, 0.5);
  ASSERT_TRUE(jobs.ok());
  for (const ReplayJob& job : jobs.value()) {
    if (job.label != label) continue;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      auto replay = JobReplay::Make(job, {.name = policy, .foresees_epoch_costs = false}, seed);
      ASSERT_TRUE(replay.ok());
      ServerRun server(job, policy, seed);
      for (int t = 0; t < kRecurrences; ++t) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", recurrence " << t);
        ASSERT_NO_FATAL_FAILURE(server.Follow(replay.value().Next()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, ServerParityTest,
    ::testing::Combine(::testing::Values("v100", "a40"),
                       ::testing::Values("deepspeech2", "bert_qa", "shufflenet", "neumf"),
                       ::testing::Values("zeus", "knowledge_gradient", "default")),
    [](const auto& instance) {
      return std::string(std::get<0>(instance.param)) + "_" + std::get<1>(instance.param) + "_" +
             std::get<2>(instance.param);
    });

}  // namespace server_parity_test
}  // namespace zeus::replay
