#include "zeus/store/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/job/event_replay.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"
#include "zeus/store/open_connection.h"
#include "zeus/store/open_repository.h"
#include "zeus/store/retention.h"
#include "zeus/store/sql_database.h"

namespace zeus {
namespace backup_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;
using namespace std::chrono_literals;

class BackupTest : public ::testing::Test {
 protected:
  std::string Url(const std::string& name) const {
    return "sqlite://" + (directory_.path() / name).string();
  }
  std::filesystem::path File(const std::string& name) const { return directory_.path() / name; }

  // Opens the jobs of a database as a service.
  struct Jobs {
    std::unique_ptr<JobRepository> repository;
    LocalJobService service;
    Jobs(const std::string& url, Clock& clock)
        : repository(OpenRepository(url).value()), service(*repository, clock) {}
  };

  static JobSpec Spec(const std::string& id) {
    JobSpec spec{.id = id, .batch_sizes = {8, 16, 32}, .default_batch_size = 16};
    spec.max_power = Watts(250);
    spec.gpu_model = "V100";
    spec.seed = 7;
    spec.labels = {{"team", "vision"}};
    return spec;
  }

  // Registers a job and has it run so often.
  void Fill(const std::string& url, const std::string& id, int runs) {
    Jobs jobs(url, clock_);
    ASSERT_TRUE(jobs.service.Register(Spec(id)).ok());
    for (int i = 0; i < runs; ++i) {
      clock_.Advance(10min);
      const auto started = jobs.service.StartTrial({.job_id = id});
      ASSERT_TRUE(started.ok()) << started.error().message;
      ASSERT_TRUE(jobs.service
                      .Report({.job_id = id,
                               .trial = started.value().trial.number,
                               .epoch = 2,
                               .time = Seconds(10),
                               .energy = Joules(100 + i),
                               .metric = 0.9})
                      .ok());
    }
  }

  // Everything of a job, as text.
  std::string Contents(const std::string& url, const std::string& id) {
    Jobs jobs(url, clock_);
    const Job job = jobs.repository->FindJob(id).value();
    std::string text = ToJson(job.spec).dump() + job.policy_state.dump();
    const auto trials = AllTrials(jobs.service, id).value();
    const auto events = AllEvents(jobs.service, id).value();
    for (const Trial& trial : trials)
      text += std::to_string(trial.number) + trial.reason + std::to_string(trial.energy.value());
    for (const JobEvent& event : events)
      text += std::to_string(event.sequence) + event.detail.dump();
    return text;
  }

  TemporaryDirectory directory_;
  VirtualClock clock_;
};

TEST_F(BackupTest, WhatIsRestoredIsWhatWasThere) {
  Fill(Url("a.db"), "cat", 12);
  Fill(Url("a.db"), "dog", 3);
  const auto made = BackUp(Url("a.db"), File("backup"), clock_.WallNow());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made.value().jobs, 2);
  EXPECT_EQ(made.value().trials, 15);
  const auto restored = Restore(File("backup"), Url("b.db"));
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ(restored.value().restored.trials, 15);
  EXPECT_TRUE(restored.value().kept.empty());
  for (const char* id : {"cat", "dog"})
    EXPECT_EQ(Contents(Url("a.db"), id), Contents(Url("b.db"), id));
  Fill(Url("b.db"), "bird", 2);  // The copy goes on.
}

TEST_F(BackupTest, JobsThatAreThereStayAsTheyAre) {
  Fill(Url("a.db"), "cat", 4);
  ASSERT_TRUE(BackUp(Url("a.db"), File("backup"), clock_.WallNow()).ok());
  Fill(Url("a.db"), "dog", 2);
  {
    Jobs jobs(Url("a.db"), clock_);
    ASSERT_TRUE(jobs.service.StartTrial({.job_id = "cat"}).ok());
  }
  const std::string before = Contents(Url("a.db"), "cat");
  const auto restored = Restore(File("backup"), Url("a.db"));
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_THAT(restored.value().kept, ElementsAre("cat"));
  EXPECT_EQ(restored.value().restored.trials, 0);
  EXPECT_EQ(Contents(Url("a.db"), "cat"), before);
}

TEST_F(BackupTest, ABackupIsOneMomentWhileOthersWrite) {
  Fill(Url("a.db"), "cat", 2);
  Jobs jobs(Url("a.db"), clock_);
  // A writer between any two reads of the backup: it neither waits nor is seen.
  const auto reader = OpenConnection(Url("a.db"), ConnectionUse::kRead).value();
  ASSERT_TRUE(reader->Run("BEGIN").ok());
  ASSERT_TRUE(reader->Run("SELECT count(*) FROM trials").ok());
  ASSERT_TRUE(jobs.service.StartTrial({.job_id = "cat"}).ok());
  EXPECT_EQ(reader->Run("SELECT count(*) FROM trials").value().rows[0][0],
            SqlValue(std::int64_t{2}));
  reader->Rollback();
  ASSERT_TRUE(BackUp(Url("a.db"), File("backup"), clock_.WallNow()).ok());
}

TEST_F(BackupTest, TheFileIsForItsOwnerAlone) {
  Fill(Url("a.db"), "cat", 1);
  ASSERT_TRUE(BackUp(Url("a.db"), File("backup"), clock_.WallNow()).ok());
  EXPECT_EQ(std::filesystem::status(File("backup")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(BackupTest, AFileThatIsNotWholeChangesNothing) {
  Fill(Url("a.db"), "cat", 3);
  ASSERT_TRUE(BackUp(Url("a.db"), File("backup"), clock_.WallNow()).ok());
  const std::string whole = ReadSmallFile(File("backup"), 1 << 20).value();
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 60) {
    std::ofstream(File("cut"), std::ios::trunc) << whole.substr(0, size);
    const auto restored = Restore(File("cut"), Url("cut.db"));
    ASSERT_FALSE(restored.ok()) << size;
    EXPECT_EQ(restored.error().code, ErrorCode::kInvalidArgument) << restored.error().message;
  }
  Jobs jobs(Url("cut.db"), clock_);
  EXPECT_TRUE(AllJobs(jobs.service, {}).value().empty());
}

TEST_F(BackupTest, OtherFilesAreRefusedInWords) {
  std::ofstream(File("text")) << "hello\n";
  EXPECT_THAT(Restore(File("text"), Url("b.db")).error().message, HasSubstr("is no backup"));
  std::ofstream(File("odd")) << R"({"format": 5, "schema": "x"})"
                             << "\n";
  EXPECT_THAT(Restore(File("odd"), Url("b.db")).error().message, HasSubstr("is no backup"));
  std::ofstream(File("newer")) << R"({"format":"zeus.backup/1","schema":999})"
                               << "\n";
  const auto newer = Restore(File("newer"), Url("b.db"));
  EXPECT_EQ(newer.error().code, ErrorCode::kConflict);
  EXPECT_EQ(BackUp(Url("none.db"), File("backup"), clock_.WallNow()).error().code,
            ErrorCode::kNotFound);
  // Names of tables and columns are not taken from the file.
  std::ofstream(File("evil")) << R"({"format":"zeus.backup/1","schema":)" << SchemaVersion()
                              << "}\n"
                              << R"({"table":"jobs","columns":["id) VALUES ('x'); --"]})"
                              << "\n[\"x\"]\n{\"rows\":1}\n";
  EXPECT_THAT(Restore(File("evil"), Url("b.db")).error().message, HasSubstr("lacks"));
}

TEST_F(BackupTest, OldEpochsAreRemovedAndNothingThatThePolicyNeeds) {
  {
    Jobs jobs(Url("a.db"), clock_);
    ASSERT_TRUE(jobs.service.Register(Spec("cat")).ok());
    for (int run = 0; run < 6; ++run) {
      clock_.Advance(24h);
      const auto trial = jobs.service.StartTrial({.job_id = "cat"}).value().trial.number;
      for (int epoch = 1; epoch <= (run == 5 ? 3 : 5); ++epoch)
        ASSERT_TRUE(jobs.service
                        .Report({.job_id = "cat",
                                 .trial = trial,
                                 .epoch = epoch,
                                 .time = Seconds(epoch),
                                 .energy = Joules(10 * epoch),
                                 .metric = epoch == 5 ? 0.95 : 0.1})
                        .ok());
    }
  }
  const auto events = [&] {
    Jobs jobs(Url("a.db"), clock_);
    return AllEvents(jobs.service, "cat").value();
  };
  const auto before = events();
  const WallTime day = clock_.WallNow() - 47h;  // Four runs ended before, and the last goes on.
  const auto look = PruneEpochs(Url("a.db"), day, PruneMode::kDryRun);
  ASSERT_TRUE(look.ok()) << look.error().message;
  ASSERT_EQ(look.value().size(), 1U);
  EXPECT_EQ(look.value()[0].trials, 4);
  EXPECT_EQ(look.value()[0].events, 4 * 4);
  EXPECT_EQ(events().size(), before.size()) << "a dry run removes nothing";

  ASSERT_TRUE(PruneEpochs(Url("a.db"), day, PruneMode::kRemove).ok());
  const auto after = events();
  EXPECT_EQ(after.size(), before.size() - 16);
  EXPECT_TRUE(PruneEpochs(Url("a.db"), day, PruneMode::kRemove).value().empty());
  const auto all = PruneEpochs(Url("a.db"), clock_.WallNow() + 1h, PruneMode::kRemove);
  EXPECT_EQ(all.value()[0].trials, 1) << "the run that goes on is left alone";
  Jobs jobs(Url("a.db"), clock_);
  const Job job = jobs.repository->FindJob("cat").value();
  const auto replayed = ReplayPolicy(job, AllEvents(jobs.service, "cat").value());
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  EXPECT_EQ(replayed.value(), job.policy_state);
  // Any other missing event is still noticed.
  auto less = AllEvents(jobs.service, "cat").value();
  less.erase(less.begin() + 1);
  EXPECT_FALSE(ReplayPolicy(job, less).ok());
}

// A database as the first version of Zeus wrote it: one job with a run that has ended and one that
// has not.
void WriteFirstVersion(SqlConnection& database) {
  ASSERT_TRUE(MigrateTo(database, 1).ok());
  ASSERT_TRUE(database.Begin().ok());
  for (const char* statement : {
           R"(INSERT INTO jobs (id, spec, seed, created_at, recurrences, trials, events,
                policy_state, least_cost_joules, least_cost_batch_size) VALUES ('old',
                '{"id":"old","prefix":"","batch_sizes":[8,16],"default_batch_size":16,"eta":0.5,
                "beta":2.0,"target_metric":0.9,"higher_is_better":true,"max_epochs":10,
                "policy":"knowledge_gradient","pruning_rounds":2,"window":0,"prior_mean":0.0,
                "prior_precision":0.0,"explorations":2,"seed":3,"max_power_watts":250.0,
                "number_of_gpus":1,"gpu_model":"V100","translate_gpu_models":true,
                "deadline_seconds":null,"lease_seconds":900.0,"labels":{"team":"vision"}}',
                '3', 1700000000000000, 1, 1, 4, 'null', 1500.0, 16))",
           "INSERT INTO job_labels (job_id, name, value) VALUES ('old', 'team', 'vision')",
           R"(INSERT INTO trials (job_id, number, recurrence, attempt, batch_size, role, gpu_model,
                max_power_watts, status, request_id, started_at, lease_seconds, lease_until,
                ended_at, epochs, time_seconds, energy_joules, cost_joules, metric,
                epoch_cost_joules, power_limit_watts, reason) VALUES ('old', 1, 0, 0, 16,
                'exploiting', 'V100', 250.0, 'converged', 'r1', 1700000000000000, 900.0,
                1700000900000000, 1700000100000000, 5, 8.0, 1000.0, 1500.0, 0.95, 300.0, 200.0,
                'reached the target'))",
           R"(INSERT INTO events (job_id, sequence, at, kind, trial, detail) VALUES
                ('old', 1, 1700000000000000, 'job_created', NULL, '{}'),
                ('old', 2, 1700000000000000, 'trial_started', 1, '{"given":true,"recurrence":0,
                 "attempt":0,"gpu_model":"V100","exploring":false,"batch_size":16,
                 "role":"exploiting"}'),
                ('old', 3, 1700000050000000, 'trial_reported', 1, '{"epoch":5}'),
                ('old', 4, 1700000100000000, 'trial_ended', 1, '{}'))",
       }) {
    const auto done = database.Run(statement);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  ASSERT_TRUE(database.Commit().ok());
}

void ExpectTheOldJob(JobService& service) {
  const Job job = service.GetJob("old").value();
  EXPECT_EQ(job.spec.labels.at("team"), "vision");
  EXPECT_EQ(job.least_cost_batch_size, 16);
  const auto trials = AllTrials(service, "old").value();
  ASSERT_EQ(trials.size(), 1U);
  EXPECT_EQ(trials[0].status, TrialStatus::kConverged);
  EXPECT_EQ(trials[0].energy, Joules(1000));
  EXPECT_FALSE(trials[0].undisturbed);
  EXPECT_EQ(trials[0].why, "");
  EXPECT_EQ(AllEvents(service, "old").value().size(), 4U);
  // It goes on.
  EXPECT_EQ(service.StartTrial({.job_id = "old"}).value().trial.number, 2);
}

TEST_F(BackupTest, ADatabaseOfTheFirstVersionIsBroughtUpToDateWithItsData) {
  WriteFirstVersion(*OpenConnection(Url("old.db"), ConnectionUse::kWrite).value());
  Jobs jobs(Url("old.db"), clock_);
  ExpectTheOldJob(jobs.service);
}

TEST_F(BackupTest, ABackupOfTheFirstVersionIsRestoredIntoThisOne) {
  WriteFirstVersion(*OpenConnection(Url("old.db"), ConnectionUse::kWrite).value());
  const auto made = BackUp(Url("old.db"), File("backup"), clock_.WallNow());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made.value().schema, 1) << "a backup changes nothing";
  const auto restored = Restore(File("backup"), Url("new.db"));
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ(restored.value().restored.jobs, 1);
  Jobs jobs(Url("new.db"), clock_);
  ExpectTheOldJob(jobs.service);
}

}  // namespace backup_test
}  // namespace zeus
