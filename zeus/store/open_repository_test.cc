#include "zeus/store/open_repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/testing/unprivileged.h"
#include "zeus/store/testing/repository_harness.h"

namespace zeus::testing {
namespace open_repository_test {

using ::testing::HasSubstr;
using ::testing::Not;

class OpenRepositoryTest : public ::testing::Test {
 protected:
  std::filesystem::path File() const { return folder_.path() / "some/folders/zeus.db"; }
  static std::string Url(const std::filesystem::path& file) { return "sqlite://" + file.string(); }

  static void Execute(const std::filesystem::path& file, const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
  static mode_t FileMode(const std::filesystem::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777;
  }
  static Error OpenError(const std::string& url) {
    auto opened = OpenRepository(url);
    if (!opened.ok()) return opened.error();
    return {ErrorCode::kInternal, "no error"};
  }
  static Status Insert(JobRepository& repository, const std::string& id) {
    return repository.Write([&](JobTransaction& change) { return change.InsertJob(AJob(id)); });
  }

  TemporaryDirectory folder_;
};

TEST_F(OpenRepositoryTest, AFileOfAnEarlierVersionKeepsWhatIsInIt) {
  {
    const auto repository = OpenRepository(Url(File()));
    ASSERT_TRUE(Insert(*repository.value(), "job").ok());
  }
  // As it was before leases had a clock, readiness a row, trials their disturbances, and duels.
  Execute(File(),
          "DROP TABLE lease_clock; DROP TABLE zeus_probe; DROP TABLE duel_irregularities;"
          "DROP TABLE budget_servers; DROP TABLE budget_nodes;"
          "DROP TABLE duel_votes; DROP TABLE duel_answers; DROP TABLE duels;"
          "ALTER TABLE trials DROP COLUMN undisturbed; ALTER TABLE trials DROP COLUMN shared;"
          "ALTER TABLE trials DROP COLUMN unmeasured; ALTER TABLE trials DROP COLUMN why;"
          "DELETE FROM zeus_migrations WHERE version > 2");
  const auto repository = OpenRepository(Url(File()));
  ASSERT_TRUE(repository.ok()) << repository.error().message;
  EXPECT_EQ(repository.value()->FindJob("job").value().spec.id, "job");
  EXPECT_EQ(repository.value()->Count("").value().jobs, 1);
  EXPECT_FALSE(repository.value()->FindLeaseTick().value());
  EXPECT_TRUE(repository.value()->Ping().ok());
}

TEST_F(OpenRepositoryTest, MakesFileAndFoldersForTheirOwnerAlone) {
  const auto repository = OpenRepository(Url(File()));
  ASSERT_TRUE(repository.ok()) << repository.error().message;
  ASSERT_TRUE(Insert(*repository.value(), "job").ok());
  EXPECT_EQ(FileMode(folder_.path() / "some"), 0700U);
  EXPECT_EQ(FileMode(folder_.path() / "some/folders"), 0700U);
  EXPECT_EQ(FileMode(File()), 0600U);
  EXPECT_EQ(FileMode(File().string() + "-wal"), 0600U);
}

TEST_F(OpenRepositoryTest, WhatWasStoredIsThereTheNextTime) {
  ASSERT_TRUE(Insert(*OpenRepository(Url(File())).value(), "job").ok());
  EXPECT_TRUE(OpenRepository(Url(File())).value()->FindJob("job").ok());
}

TEST_F(OpenRepositoryTest, AFileThatWasDeletedIsNotWrittenTo) {
  const auto repository = OpenRepository(Url(File()));
  ASSERT_TRUE(Insert(*repository.value(), "job").ok());
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(File().string() + suffix);
  EXPECT_EQ(Insert(*repository.value(), "other").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(repository.value()->Ping().error().code, ErrorCode::kUnavailable);
}

TEST_F(OpenRepositoryTest, RefusesAFileThatIsNoDatabaseAndLeavesItAlone) {
  for (const std::string& content :
       {std::string("x"), std::string("my diary, page one"), std::string(10'000, '-')}) {
    const auto file = folder_.AddFile("diary", content);
    const Error error = OpenError(Url(file));
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message, HasSubstr(file.string() + ": is not a database"));
    EXPECT_TRUE(ReadSmallFile(file).value() == content) << content.size();
  }
}

TEST_F(OpenRepositoryTest, RefusesTheDatabaseOfAnotherProgramAndLeavesItAlone) {
  const auto file = folder_.path() / "other.db";
  Execute(file, "CREATE TABLE jobs (id TEXT)");
  const std::string before = ReadSmallFile(file).value();
  const Error error = OpenError(Url(file));
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("belongs to another program"));
  EXPECT_TRUE(ReadSmallFile(file).value() == before);
}

TEST_F(OpenRepositoryTest, RefusesADatabaseThatANewerProgramWrote) {
  ASSERT_TRUE(OpenRepository(Url(File())).ok());
  Execute(File(), "INSERT INTO zeus_migrations (version) VALUES (99)");
  const Error error = OpenError(Url(File()));
  EXPECT_EQ(error.code, ErrorCode::kConflict);
  EXPECT_THAT(error.message, HasSubstr("was written by a newer zeus (schema 99"));
}

TEST_F(OpenRepositoryTest, SaysWhenAFileCannotBeWritten) {
  ASSERT_TRUE(OpenRepository(Url(File())).ok());
  const Unprivileged somebody;
  if (!somebody.effective()) GTEST_SKIP() << "root cannot become somebody else here";
  const Error error = OpenError(Url(File()));
  EXPECT_THAT(error.message, HasSubstr(folder_.path().string()));
  EXPECT_EQ(error.code, ErrorCode::kPermissionDenied) << error.message;
}

TEST_F(OpenRepositoryTest, SaysWhenARowIsDamaged) {
  ASSERT_TRUE(Insert(*OpenRepository(Url(File())).value(), "job").ok());
  Execute(File(), "UPDATE jobs SET policy_state = '{'");
  const auto job = OpenRepository(Url(File())).value()->FindJob("job");
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().code, ErrorCode::kInternal);
  EXPECT_THAT(job.error().message, HasSubstr("jobs"));
}

TEST_F(OpenRepositoryTest, UnderstandsFourSlashesAsAnAbsolutePath) {
  const std::string file = File().string();
  ASSERT_TRUE(OpenRepository("sqlite:///" + file).ok());
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(OpenRepositoryTest, RefusesOtherUrlsWithoutRepeatingPasswords) {
  for (const char* url :
       {"mysql://me:secret@host/zeus", "me:secret@host", "sqlite://secret/zeus.db", "sqlite:",
        "sqlite:///", "postgresql://me:sec@ret@host/zeus", "postgresql://me:secret%zz@host/zeus",
        "postgresql://me:secret@host/zeus?nonsense=secret"}) {
    const Error error = OpenError(url);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << url << ": " << error.message;
    EXPECT_THAT(error.message, Not(HasSubstr("me:sec"))) << url;
    EXPECT_THAT(error.message, Not(HasSubstr("ret@"))) << url;
  }
  EXPECT_THAT(OpenError("mysql://host").message, HasSubstr("sqlite:///absolute/path"));
}

TEST_F(OpenRepositoryTest, SaysWhichServerDoesNotAnswerAndNotThePassword) {
  const Error error = OpenError("postgresql://me:secret@/zeus?host=" + folder_.path().string());
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr(folder_.path().string()));
  EXPECT_THAT(error.message, HasSubstr("\"zeus\""));
  EXPECT_THAT(error.message, Not(HasSubstr("secret")));
}

TEST_F(OpenRepositoryTest, RefusesWhatTheOtherEngineCouldNotHold) {
  const auto repository = OpenRepository("sqlite::memory:").value();
  ASSERT_TRUE(Insert(*repository, "job").ok());
  const auto refusal = [&](const Trial& trial) {
    const Status inserted =
        repository->Write([&](JobTransaction& change) { return change.InsertTrial(trial); });
    return inserted.ok() ? "" : inserted.error().message;
  };
  Trial trial = ATrial("job", 1);
  trial.reason = std::string("a\0b", 3);
  EXPECT_THAT(refusal(trial), HasSubstr("zero bytes"));
  trial.reason = "\xff";
  EXPECT_THAT(refusal(trial), HasSubstr("UTF-8"));
  trial.reason.clear();
  trial.metric = std::nan("");
  EXPECT_THAT(refusal(trial), HasSubstr("not a number"));
  Job job = AJob("other");
  job.policy_state = {{"cost", std::numeric_limits<double>::infinity()}};
  EXPECT_FALSE(
      repository->Write([&](JobTransaction& change) { return change.InsertJob(job); }).ok());
}

TEST_F(OpenRepositoryTest, TheUsersOwnFileIsWhereDataBelongs) {
  std::map<std::string, std::string> variables = {{"HOME", "/home/ada"}};
  const Environment environment = [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_EQ(DefaultDatabaseUrl(environment).value(),
            "sqlite:///home/ada/.local/share/zeus/zeus.db");
  variables["XDG_DATA_HOME"] = "/data";
  EXPECT_EQ(DefaultDatabaseUrl(environment).value(), "sqlite:///data/zeus/zeus.db");
  variables = {{"XDG_DATA_HOME", "not/absolute"}};
  EXPECT_FALSE(DefaultDatabaseUrl(environment).ok());
}

// A child counts up and tells us of each change that was answered; then it is killed.
TEST_F(OpenRepositoryTest, NothingThatWasAnsweredIsLostWhenAProcessIsKilled) {
  ASSERT_TRUE(Insert(*OpenRepository(Url(File())).value(), "job").ok());
  int answers[2];
  ASSERT_EQ(::pipe(answers), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto repository = OpenRepository(Url(File())).value();
    while (true) {
      const Status counted = repository->Write([](JobTransaction& change) -> Status {
        ZEUS_TRY(Job job, change.LockJob("job"));
        ++job.trials;
        ZEUS_RETURN_IF_ERROR(change.InsertTrial(ATrial("job", job.trials)));
        return change.UpdateJob(job);
      });
      if (!counted.ok() || ::write(answers[1], ".", 1) != 1) ::_exit(1);
    }
  }
  ::close(answers[1]);
  std::int64_t answered = 0;
  char dot = 0;
  for (; answered < 40 && ::read(answers[0], &dot, 1) == 1; ++answered) {
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (; ::read(answers[0], &dot, 1) == 1; ++answered) {
  }
  ::close(answers[0]);
  ASSERT_GE(answered, 40);

  const auto repository = OpenRepository(Url(File())).value();
  const auto job = repository->FindJob("job");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_GE(job.value().trials, answered);
  EXPECT_LE(job.value().trials, answered + 1);
  EXPECT_EQ(repository->ListTrials("job", {.limit = 1'000'000}).value().size(),
            static_cast<std::size_t>(job.value().trials));
}

}  // namespace open_repository_test
}  // namespace zeus::testing
