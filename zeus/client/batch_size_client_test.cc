#include "zeus/client/batch_size_client.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <thread>

#include "zeus/base/testing/scoped_variable.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/client/remote_job_service.h"
#include "zeus/client/testing/hanging_server.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"
#include "zeus/job/testing/flaky_job_service.h"
#include "zeus/training/testing/simulated_node.h"
#include "zeus/training/testing/thread_ranks.h"
#include "zeus/training/training_loop.h"

namespace zeus {
namespace batch_size_client_test {

using zeus::testing::Group;
using zeus::testing::GroupMember;
using zeus::testing::SimulatedNode;

JobSpec Spec() {
  JobSpec spec{.id = "job", .batch_sizes = {256, 512, 1024}, .default_batch_size = 512};
  spec.target_metric = 0.9;
  spec.seed = 1;
  return spec;
}

class BatchSizeClientTest : public ::testing::Test {
 protected:
  // Trains until the loop ends; the metric grows by `step` each epoch.
  TrainingSummary Train(BatchSizeClient& client, double step, int max_epochs = 50) {
    TrainingLoop loop(node_.monitor(), {.max_epochs = max_epochs, .callbacks = {&client}});
    for (const int epoch : loop.Epochs()) {
      const std::vector<int> batches(4);
      for ([[maybe_unused]] const int batch : loop.Batches(batches)) node_.Step();
      loop.ReportMetric(step * (epoch + 1));
    }
    return loop.Summary();
  }

  std::unique_ptr<BatchSizeClient> Begin(BatchSizeClient::Options options = {}) {
    options.job = Spec();
    options.thread = TrialReporter::Thread::kNone;
    return BatchSizeClient::Begin(&service_, node_.monitor(), options).value();
  }

  zeus::testing::TemporaryDirectory directory_;
  zeus::testing::ScopedVariable data_{"XDG_DATA_HOME", directory_.path()};
  SimulatedNode node_{{"V100"}, {}};
  MemoryRepository repository_;
  LocalJobService service_{repository_, node_.clock()};
};

TEST_F(BatchSizeClientTest, ARunUntilTheTargetTeaches) {
  const auto client = Begin();
  EXPECT_EQ(client->batch_size(), 512);
  const TrainingSummary summary = Train(*client, 0.31);
  EXPECT_EQ(summary.epochs, 3);
  EXPECT_TRUE(client->converged());
  const Trial trial = service_.GetTrial("job", 1).value();
  EXPECT_EQ(trial.status, TrialStatus::kConverged);
  EXPECT_EQ(trial.epochs, 3);
  EXPECT_NEAR(trial.energy.value(), summary.amounts.energy.value(), 0.05 * trial.energy.value());
  EXPECT_NEAR(trial.time.count(), summary.amounts.time.count(), 0.01);
  EXPECT_EQ(trial.power_limit, Watts(250));
  EXPECT_EQ(trial.max_power, Watts(250));
  EXPECT_FALSE(trial.gpu_model.empty());
}

TEST_F(BatchSizeClientTest, ALoopEndsWhenTheServiceSaysSo) {
  Train(*Begin(), 0.31);  // Now there is a least cost.
  const auto client = Begin();
  const TrainingSummary summary = Train(*client, 0.0);
  EXPECT_LT(summary.epochs, 50);
  EXPECT_TRUE(client->ShouldStop());
  EXPECT_FALSE(client->converged());
  EXPECT_TRUE(client->retry());
  const auto again = Begin({.recurrence = client->recurrence()});
  EXPECT_EQ(again->recurrence(), client->recurrence());
}

TEST_F(BatchSizeClientTest, TheEndOfTheProgramsOwnEpochsIsAStop) {
  Train(*Begin(), 0.1, 2);
  EXPECT_EQ(service_.GetTrial("job", 1).value().status, TrialStatus::kStopped);
}

TEST_F(BatchSizeClientTest, AnExceptionTeachesNothing) {
  try {
    const auto client = Begin();
    TrainingLoop loop(node_.monitor(), {.callbacks = {client.get()}});
    for ([[maybe_unused]] const int epoch : loop.Epochs()) throw std::runtime_error("no memory");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(service_.GetTrial("job", 1).value().status, TrialStatus::kFailed);
}

TEST_F(BatchSizeClientTest, ARunThatIsGivenUpTeachesNothing) {
  const auto client = Begin();
  client->OnTrainBegin();
  client->OnEvaluate(0.1);
  client->GiveUp();
  client->OnTrainEnd();
  EXPECT_EQ(service_.GetTrial("job", 1).value().status, TrialStatus::kFailed);
}

TEST_F(BatchSizeClientTest, AJobCanBeRegisteredBeforeItsTrialBegins) {
  JobSpec spec = Spec();
  spec.id.clear();
  spec.prefix = "mnist";
  spec.number_of_gpus = 0;
  const auto client =
      BatchSizeClient::Register(&service_, node_.monitor(),
                                {.job = spec, .thread = TrialReporter::Thread::kNone})
          .value();
  EXPECT_TRUE(client->job().id.starts_with("mnist"));
  EXPECT_EQ(service_.GetJob(client->job().id).value().spec.number_of_gpus, 1);
  EXPECT_EQ(client->batch_size(), 0);
  EXPECT_TRUE(service_.ListTrials(client->job().id, {}).value().empty());
  ASSERT_TRUE(client->BeginTrial().ok());
  ASSERT_TRUE(client->BeginTrial().ok());
  EXPECT_EQ(client->batch_size(), 512);
  EXPECT_EQ(client->trial(), 1);
  EXPECT_EQ(service_.ListTrials(client->job().id, {}).value().size(), 1U);
}

TEST_F(BatchSizeClientTest, TrainingGoesOnWithoutTheService) {
  const auto client = Begin();
  ASSERT_TRUE(service_.Delete("job").ok());
  const TrainingSummary summary = Train(*client, 0.01, 3);
  EXPECT_EQ(summary.epochs, 3);
  ASSERT_TRUE(client->trouble());
  EXPECT_EQ(client->trouble()->code, ErrorCode::kNotFound);
}

TEST_F(BatchSizeClientTest, ATrainingBeginsWithoutAnAnswerAndTheNextStartDeliversItsResults) {
  zeus::testing::FlakyJobService flaky(service_);
  flaky.away = true;
  const auto begin = [&] {
    return BatchSizeClient::Begin(
        &flaky, node_.monitor(),
        {.job = Spec(), .start_timeout = Seconds(1), .thread = TrialReporter::Thread::kNone});
  };
  {
    auto client = begin();
    ASSERT_TRUE(client.ok()) << client.error().message;
    EXPECT_EQ(client.value()->batch_size(), 512);
    const TrainingSummary summary = Train(*client.value(), 0.31);
    EXPECT_EQ(summary.epochs, 3);
    EXPECT_TRUE(client.value()->converged());
  }
  EXPECT_FALSE(service_.GetJob("job").ok());
  flaky.away = false;
  const auto next = begin();
  ASSERT_TRUE(next.ok());
  const Trial told = service_.GetTrial("job", 1).value();
  EXPECT_EQ(told.status, TrialStatus::kConverged);
  EXPECT_EQ(told.epochs, 3);
  EXPECT_GT(told.energy, Joules(0));
  EXPECT_EQ(next.value()->trial(), 2);
  const auto needed = BatchSizeClient::Begin(
      &flaky, node_.monitor(),
      {.job = Spec(), .needs_service = true, .thread = TrialReporter::Thread::kNone});
  EXPECT_TRUE(needed.ok());
}

TEST_F(BatchSizeClientTest, TheTargetEndsATrainingWhoseServiceWentAway) {
  zeus::testing::FlakyJobService flaky(service_);
  const auto begin = [&] {
    return BatchSizeClient::Begin(
        &flaky, node_.monitor(),
        {.job = Spec(), .start_timeout = Seconds(1), .thread = TrialReporter::Thread::kNone});
  };
  {
    const auto client = begin().value();
    flaky.away = true;
    EXPECT_EQ(Train(*client, 0.31).epochs, 3);
    EXPECT_TRUE(client->converged());
    EXPECT_TRUE(client->trouble());
  }
  flaky.away = false;
  EXPECT_EQ(begin().value()->trial(), 2);
  EXPECT_EQ(service_.GetTrial("job", 1).value().status, TrialStatus::kConverged);
}

TEST_F(BatchSizeClientTest, AServerThatHangsHoldsUpNoEpochAndGetsTheResultsLater) {
  zeus::testing::HangingJobService hanging(service_);
  constexpr int kEpochs = 40;
  {
    const auto client = BatchSizeClient::Begin(&hanging, node_.monitor(),
                                               {.job = Spec(), .end_timeout = Seconds(0)})
                            .value();
    TrainingLoop loop(node_.monitor(), {.callbacks = {client.get()}});
    for (const int epoch : loop.Epochs()) {
      node_.Step();
      loop.ReportMetric(0.9 * (epoch + 1) / kEpochs);
      if (epoch == 1) hanging.server().AwaitClient();  // The first report is under way.
    }
    EXPECT_EQ(loop.Summary().epochs, kEpochs);
    EXPECT_TRUE(client->converged());
    // All epochs were trained while the server owed the answer to the first one.
    EXPECT_EQ(hanging.report_calls(), 1);
  }
  // The end of the client has cancelled the call.
  EXPECT_EQ(hanging.returned_report_calls(), 1);
  EXPECT_EQ(service_.GetTrial("job", 1).value().epochs, 0);
  EXPECT_EQ(Begin()->trial(), 2);
  const Trial delivered = service_.GetTrial("job", 1).value();
  EXPECT_EQ(delivered.status, TrialStatus::kConverged);
  EXPECT_EQ(delivered.epochs, kEpochs);
  EXPECT_GT(delivered.energy, Joules(0));
}

TEST_F(BatchSizeClientTest, ATrainingBeginsAndEndsAtAServerThatHangs) {
  const zeus::testing::HangingServer server;
  SystemClock clock;
  const auto remote = RemoteJobService::Connect({.url = server.url()}, clock).value();
  {
    const auto client = BatchSizeClient::Begin(
        remote.get(), node_.monitor(),
        {.job = Spec(), .start_timeout = Seconds(0), .end_timeout = Seconds(0)});
    ASSERT_TRUE(client.ok()) << client.error().message;
    EXPECT_EQ(client.value()->batch_size(), 512);
    EXPECT_LT(client.value()->trial(), 0);
    EXPECT_EQ(Train(*client.value(), 0.31).epochs, 3);
    EXPECT_TRUE(client.value()->converged());
  }
  EXPECT_EQ(Begin()->trial(), 2);
  EXPECT_EQ(service_.GetTrial("job", 1).value().status, TrialStatus::kConverged);
}

TEST_F(BatchSizeClientTest, TheLastEpochAllowedEndsARunWithoutAnAnswer) {
  zeus::testing::HangingJobService hanging(service_);
  JobSpec spec = Spec();
  spec.max_epochs = 2;
  const auto client =
      BatchSizeClient::Begin(&hanging, node_.monitor(), {.job = spec, .end_timeout = Seconds(0)})
          .value();
  EXPECT_EQ(Train(*client, 0.1).epochs, 2);
  EXPECT_TRUE(client->ShouldStop());
  EXPECT_FALSE(client->converged());
  EXPECT_THAT(client->message(), ::testing::HasSubstr("within 2 epochs"));
}

TEST_F(BatchSizeClientTest, AnswersThatComeBetweenEpochsAreObeyed) {
  SystemClock clock;
  LocalJobService service(repository_, clock);
  JobSpec spec = Spec();
  spec.policy = "zeus";
  const auto begin = [&] {
    return BatchSizeClient::Begin(&service, node_.monitor(), {.job = spec}).value();
  };
  EXPECT_TRUE(Train(*begin(), 1.0).epochs == 1);  // Now there is a least cost.
  const auto client = begin();
  client->OnTrainBegin();
  // The budget of the second run is reached long before its greatest number of epochs. Each report
  // is answered by a thread at any time; the run sees the answer without another report.
  while (!client->ShouldStop()) {
    node_.Step();
    client->OnEvaluate(0.0);
    ASSERT_TRUE(client->Flush(Seconds(60)));
  }
  EXPECT_LT(service.GetTrial("job", 2).value().epochs, spec.max_epochs);
  EXPECT_FALSE(client->converged());
  EXPECT_EQ(service.GetTrial("job", 2).value().status, TrialStatus::kStopped);
}

TEST_F(BatchSizeClientTest, WithoutAServiceThereIsNoBatchSize) {
  const auto client = BatchSizeClient::Begin(nullptr, node_.monitor(), {.job = Spec()});
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kInvalidArgument);
}

TEST(BatchSizeClientRanksTest, AllRanksTrainAlikeAndStopTogether) {
  constexpr int kRanks = 2;
  Group group(kRanks);
  SystemClock clock;
  MemoryRepository repository;
  LocalJobService service(repository, clock);
  std::vector<int> batch_sizes(kRanks);
  std::vector<int> epochs(kRanks);
  std::vector<double> energies(kRanks);
  const auto train = [&](int rank) {
    const auto number = static_cast<std::size_t>(rank);
    SimulatedNode node({"V100"}, {});
    GroupMember member(group, rank);
    const auto client =
        BatchSizeClient::Begin(
            rank == 0 ? &service : nullptr, node.monitor(),
            {.job = Spec(), .collective = &member, .thread = TrialReporter::Thread::kNone})
            .value();
    batch_sizes[number] = client->batch_size();
    TrainingLoop loop(node.monitor(), {.callbacks = {client.get()}, .collective = &member});
    for (const int epoch : loop.Epochs()) {
      const std::vector<int> batches(4);
      for ([[maybe_unused]] const int batch : loop.Batches(batches)) node.Step();
      if (rank == 0) loop.ReportMetric(0.31 * (epoch + 1));
    }
    const TrainingSummary summary = loop.Summary();
    epochs[number] = summary.epochs;
    energies[number] = summary.amounts.energy.value();
  };
  std::thread other(train, 1);
  train(0);
  other.join();
  EXPECT_THAT(batch_sizes, ::testing::Each(512));
  EXPECT_THAT(epochs, ::testing::Each(3));
  const Trial trial = service.GetTrial("job", 1).value();
  EXPECT_EQ(trial.status, TrialStatus::kConverged);
  EXPECT_EQ(trial.max_power, Watts(500));
  EXPECT_NEAR(trial.energy.value(), energies[0], 0.05 * energies[0]);
}

}  // namespace batch_size_client_test
}  // namespace zeus
