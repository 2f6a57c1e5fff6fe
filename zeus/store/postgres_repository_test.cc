#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "zeus/store/open_repository.h"
#include "zeus/store/testing/budget_conformance.h"
#include "zeus/store/testing/duel_conformance.h"
#include "zeus/store/testing/plan_conformance.h"
#include "zeus/store/testing/postgres_server.h"
#include "zeus/store/testing/repository_conformance.h"

namespace zeus::testing {
namespace postgres_repository_test {

using budget::BudgetConformance;
using colosseum::DuelConformance;
using colosseum::DuelSqlConformance;

// One server for all tests of this program.
class PostgresEnvironment final : public ::testing::Environment {
 public:
  void SetUp() override {
    auto started = PostgresServer::Start(PostgresServer::Sync::kNo);
    if (!started.ok() && started.error().code == ErrorCode::kNotFound)
      GTEST_SKIP() << started.error().message;
    ASSERT_TRUE(started.ok()) << started.error().message;
    server_ = std::move(started).value();
  }
  void TearDown() override { server_.reset(); }

  PostgresServer& server() { return *server_; }
  std::string NewDatabase() {
    return server_->Database("test" + std::to_string(++databases_)).value();
  }

 private:
  std::unique_ptr<PostgresServer> server_;
  int databases_ = 0;
};

PostgresEnvironment& Environment() {
  static auto* environment = new PostgresEnvironment;  // Which googletest owns.
  return *environment;
}
const auto* const kEnvironment = ::testing::AddGlobalTestEnvironment(&Environment());

RepositoryHarness InADatabase() {
  const std::string url = Environment().NewDatabase();
  return {nullptr, [url] { return OpenStore(url); }};
}

const auto kCases = ::testing::Values(RepositoryCase{"Server", InADatabase});

INSTANTIATE_TEST_SUITE_P(Postgres, RepositoryConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Postgres, RepositoryConcurrency, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Postgres, PlanConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Postgres, SessionConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Postgres, DuelConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Postgres, DuelSqlConformance, kCases, NameOfRepositoryCase());
INSTANTIATE_TEST_SUITE_P(Postgres, BudgetConformance, kCases, NameOfRepositoryCase());

// The server dies while changes are under way.
class PostgresCrash : public RepositoryTest {};
INSTANTIATE_TEST_SUITE_P(Postgres, PostgresCrash, kCases, NameOfRepositoryCase());

TEST_P(PostgresCrash, WhatWasAnsweredIsThereAndTheRepositoryGoesOn) {
  constexpr int kThreads = 8;
  ASSERT_TRUE(Insert(AJob("job")).ok());
  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> committed = 0;
  std::atomic<std::int64_t> unknown = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        const Status counted = CountUp(*repository_, "job");
        if (counted.ok()) ++committed;
        if (counted.ok()) continue;
        ++unknown;
        EXPECT_EQ(counted.error().code, ErrorCode::kUnavailable) << counted.error().message;
      }
    });
  while (committed < 50) std::this_thread::yield();
  ASSERT_TRUE(Environment().server().Restart().ok());
  const std::int64_t before = committed;
  while (committed < before + 50) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();

  const auto job = repository_->FindJob("job");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_GE(job.value().trials, committed);
  // A commit whose answer was lost may be there, whole.
  EXPECT_LE(job.value().trials, committed + unknown);
  ExpectCount(*repository_, "job", job.value().trials);
}

TEST_P(PostgresCrash, AnIdleRepositoryNoticesNothing) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  ASSERT_TRUE(repository_->FindJob("job").ok());
  ASSERT_TRUE(Environment().server().Restart().ok());
  EXPECT_TRUE(repository_->FindJob("job").ok());
  EXPECT_TRUE(CountUp(*repository_, "job").ok());
}

TEST_P(PostgresCrash, WithoutAServerItSaysSo) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  Environment().server().Crash();
  const Status ping = repository_->Ping();
  const Status counted = CountUp(*repository_, "job");
  const auto opened = harness_.open();
  ASSERT_TRUE(Environment().server().Restart().ok());
  ASSERT_FALSE(ping.ok());
  EXPECT_EQ(ping.error().code, ErrorCode::kUnavailable);
  ASSERT_FALSE(counted.ok());
  EXPECT_EQ(counted.error().code, ErrorCode::kUnavailable);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(opened.error().message.find("is the database running?"), std::string::npos)
      << opened.error().message;
  EXPECT_TRUE(repository_->Ping().ok());
}

}  // namespace postgres_repository_test
}  // namespace zeus::testing
