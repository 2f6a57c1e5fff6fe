#include "zeus/server/api.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"
#include "zeus/plan/local_plan_service.h"
#include "zeus/plan/plan_repository.h"

namespace zeus::server {
namespace api_test {

constexpr const char* kJob =
    R"({"id": "mnist", "batch_sizes": [32, 64], "default_batch_size": 64, "policy": "zeus",
        "max_power_watts": 250, "gpu_model": "V100"})";

class ApiTest : public ::testing::Test {
 protected:
  http::Answer Ask(Api& api, std::string method, std::string target, std::string body = "",
                   std::string authorization = "") {
    http::Request request{.method = std::move(method),
                          .target = std::move(target),
                          .body = std::move(body),
                          .authorization = std::move(authorization)};
    return api.Handle(request);
  }

  VirtualClock clock_;
  MemoryRepository repository_;
  LocalJobService service_{repository_, clock_};
  ServerMetrics metrics_;
};

TEST_F(ApiTest, AJobIsCreatedOnce) {
  Api api(service_, metrics_, nullptr, {});
  EXPECT_EQ(Ask(api, "POST", "/v1/jobs", kJob).status, 201);
  EXPECT_EQ(Ask(api, "POST", "/v1/jobs", kJob).status, 200);
  EXPECT_EQ(Ask(api, "GET", "/v1/jobs/mnist").status, 200);
}

TEST_F(ApiTest, OverviewsSavingsAndExportsNeedOneRequest) {
  Api api(service_, metrics_, nullptr, {});
  Ask(api, "POST", "/v1/jobs", kJob);
  Ask(api, "POST", "/v1/jobs/mnist/trials");
  const Json list = Json::parse(Ask(api, "GET", "/v1/job-overviews?limit=5").body);
  ASSERT_EQ(list.at("jobs").size(), 1U);
  const Json& job = list.at("jobs").front();
  EXPECT_EQ(job.at("running").size(), 1U);
  EXPECT_EQ(job.at("job").at("stage"), "pruning");
  EXPECT_FALSE(job.at("next").at("settled").get<bool>());
  EXPECT_TRUE(job.at("savings").at("saved").is_null());
  EXPECT_EQ(Json::parse(Ask(api, "GET", "/v1/jobs/mnist/overview").body), job);
  const Json page = Json::parse(Ask(api, "GET", "/v1/jobs/mnist/recurrences").body);
  EXPECT_EQ(page.at("recurrences").size(), 1U);
  EXPECT_TRUE(page.at("next").is_null());
  const http::Answer exported = Ask(api, "GET", "/v1/jobs/mnist/export");
  EXPECT_EQ(exported.content_type, "application/x-ndjson");
  EXPECT_EQ(std::ranges::count(exported.body, '\n'), 4);
  const Json saved = Json::parse(
      Ask(api, "GET", "/v1/savings?bounds=1970-01-01T00:00:00Z,1970-01-08T00:00:00Z").body);
  EXPECT_EQ(saved.at("spans").front().at("energy_joules"), 0);
}

// A tariff: power is cheap from six hours after the start of the clock on.
TEST_F(ApiTest, AnEarlyCallerIsToldWhenToStart) {
  zeus::testing::TemporaryDirectory directory;
  directory.AddFile("spot.csv",
                    "time,EUR_per_kwh\n1681689600,0.4\n1681711200,0.1\n1681776000,0.1\n");
  const auto carbon =
      CarbonAccounting::Open(clock_, {.price = (directory.path() / "spot.csv").string()});
  ASSERT_TRUE(carbon.ok()) << carbon.error().message;
  Api api(service_, metrics_, nullptr, {.carbon = &carbon.value(), .clock = &clock_});
  Ask(api, "POST", "/v1/jobs", kJob);
  const auto ask = [&](const std::string& start) {
    return Ask(api, "POST", "/v1/jobs/mnist/trials", R"({"request_id":"r","start":)" + start + "}");
  };
  const std::string wish = R"({"goal":"price","max_wait_seconds":43200,"duration_seconds":3600})";
  const http::Answer early = ask(wish);
  ASSERT_EQ(early.status, 200) << early.body;
  EXPECT_EQ(Json::parse(early.body).at("start_at"), "2023-04-17T06:00:00Z");
  EXPECT_EQ(Json::parse(early.body).at("start_in_seconds"), 6 * 3600);
  EXPECT_EQ(Json::parse(Ask(api, "GET", "/v1/jobs/mnist/trials").body).at("trials").size(), 0U);
  // Another forecast is not there, and the duration is not known: nobody waits.
  EXPECT_EQ(ask(R"({"goal":"price","max_wait_seconds":43200})").status, 201);
  EXPECT_EQ(ask(R"({"goal":"carbon","max_wait_seconds":43200})").status, 422);
  EXPECT_EQ(ask(R"({"goal":"price"})").status, 422);
  EXPECT_EQ(ask(R"("soon")").status, 422);
  clock_.Advance(std::chrono::hours(6));
  EXPECT_EQ(ask(wish).status, 201);
  Api without(service_, metrics_, nullptr, {});
  EXPECT_EQ(Ask(without, "POST", "/v1/jobs/mnist/trials", R"({"start":)" + wish + "}").status, 422);
}

TEST_F(ApiTest, RecurrencesComeInPages) {
  Api api(service_, metrics_, nullptr, {});
  Ask(api, "POST", "/v1/jobs", kJob);
  for (int i = 0; i < 5; ++i) Ask(api, "POST", "/v1/jobs/mnist/trials");
  std::vector<std::int64_t> seen;
  std::string after = "-1";
  for (int page = 0; page < 3; ++page) {
    const Json json =
        Json::parse(Ask(api, "GET", "/v1/jobs/mnist/recurrences?limit=2&after=" + after).body);
    for (const Json& recurrence : json.at("recurrences"))
      seen.push_back(recurrence.at("recurrence"));
    if (json.at("next").is_null()) break;
    after = json.at("next").dump();
  }
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST_F(ApiTest, BoundsAndEtasThatMakeNoSenseAreRefused) {
  Api api(service_, metrics_, nullptr, {});
  Ask(api, "POST", "/v1/jobs", kJob);
  for (const char* target :
       {"/v1/savings", "/v1/savings?bounds=", "/v1/savings?bounds=0", "/v1/savings?bounds=2,1",
        "/v1/savings?bounds=1,1", "/v1/savings?bounds=1,yesterday", "/v1/jobs/mnist/arms?eta=2",
        "/v1/jobs/mnist/arms?eta=much", "/v1/jobs/mnist/recurrences?after=-2"})
    EXPECT_EQ(Ask(api, "GET", target).status, 422) << target;
  EXPECT_EQ(Ask(api, "GET", "/v1/jobs/mnist/arms?eta=1").status, 200);
}

TEST_F(ApiTest, TheApplicationIsServedBesideTheRoutesAndNeedsNoToken) {
  const web::Application application({.program = "zeus serve", .features = {"jobs"}});
  Api api(service_, metrics_, nullptr, {.application = &application});
  EXPECT_EQ(Ask(api, "GET", "/app.json").status, 200);
  EXPECT_EQ(Ask(api, "GET", "/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(Ask(api, "POST", "/").status, 404);
  EXPECT_EQ(Ask(api, "GET", "/healthz").status, 200);
  Api without(service_, metrics_, nullptr, {});
  EXPECT_EQ(Ask(without, "GET", "/").status, 404);
}

TEST_F(ApiTest, AChangeNamesTheJobWhoseStreamsAreToLook) {
  Api api(service_, metrics_, nullptr, {});
  Ask(api, "POST", "/v1/jobs", kJob);
  EXPECT_EQ(Ask(api, "POST", "/v1/jobs/mnist/trials").changed_topic, "mnist");
  EXPECT_EQ(Ask(api, "GET", "/v1/jobs/mnist").changed_topic, "");
}

TEST_F(ApiTest, ADatabaseThatDoesNotAnswerMakesItUnreadyButNotUnhealthy) {
  const auto down = [] { return Error{ErrorCode::kInternal, "the disk is gone"}; };
  Api api(service_, metrics_, nullptr, {.ready = down});
  EXPECT_EQ(Ask(api, "GET", "/healthz").status, 200);
  const http::Answer answer = Ask(api, "GET", "/readyz");
  EXPECT_EQ(answer.status, 503);
  // Reasons name files and hosts: they are for the log.
  EXPECT_EQ(answer.body.find("the disk is gone"), std::string::npos);
}

TEST_F(ApiTest, OnlyRoutesThatWriteChangeSomething) {
  Api api(service_, metrics_, nullptr, {});
  EXPECT_EQ(api.Classify({.method = "POST", .target = "/v1/jobs"}), http::Work::kWrite);
  EXPECT_EQ(api.Classify({.method = "GET", .target = "/jobs/batch_size?job_id=a"}),
            http::Work::kWrite);
  EXPECT_EQ(api.Classify({.method = "GET", .target = "/v1/jobs"}), http::Work::kRead);
  EXPECT_EQ(api.Classify({.method = "GET", .target = "/readyz"}), http::Work::kRead);
  for (const char* target : {"/nowhere", "/v1/%zz", "/healthz", "/metrics", "/openapi.json"})
    EXPECT_EQ(api.Classify({.method = "GET", .target = target}), http::Work::kImmediate) << target;
}

TEST_F(ApiTest, PlansAreMadeApartFromEverythingElse) {
  MemoryPlanRepository repository;
  LocalPlanService plans(repository, clock_);
  Api api(service_, metrics_, nullptr, {.plans = &plans});
  EXPECT_EQ(api.Classify({.method = "POST", .target = "/v1/plans"}), http::Work::kSlow);
  EXPECT_EQ(api.Classify({.method = "GET", .target = "/v1/plans/a"}), http::Work::kSlow);
  EXPECT_EQ(api.Classify({.method = "GET", .target = "/v1/plans"}), http::Work::kRead);
  EXPECT_EQ(api.Classify({.method = "DELETE", .target = "/v1/plans/a"}), http::Work::kWrite);
  EXPECT_TRUE(api.Admit({.method = "POST", .target = "/v1/plans"}).large_body);
  EXPECT_FALSE(api.Admit({.method = "POST", .target = "/v1/plans/a/pace"}).large_body);
  EXPECT_FALSE(api.Admit({.method = "POST", .target = "/v1/jobs"}).large_body);
}

TEST_F(ApiTest, TokensAreRecognisedWhateverTheCaseOfTheScheme) {
  zeus::testing::TemporaryDirectory directory;
  const auto path = directory.path() / "tokens";
  const std::string token = http::AddToken(path, {.name = "ci"}).value();
  const auto tokens = http::TokenFile::Open(path).value();
  Api api(service_, metrics_, nullptr, {.access = {.tokens = tokens.get()}});
  EXPECT_EQ(Ask(api, "GET", "/v1/jobs", "", "bearer " + token).status, 200);
  EXPECT_EQ(Ask(api, "GET", "/v1/jobs", "", "Bearer  " + token).status, 200);
  EXPECT_EQ(Ask(api, "GET", "/v1/jobs", "", token).status, 401);
  EXPECT_EQ(Ask(api, "GET", "/v1/jobs", "", "Bearer").status, 401);
}

TEST_F(ApiTest, CallersLearnWhatTheyMayDo) {
  zeus::testing::TemporaryDirectory directory;
  const auto path = directory.path() / "tokens";
  const auto add = [&](const http::TokenEntry& token) {
    return http::AddToken(path, token).value();
  };
  const std::string reader = add({.name = "tv", .role = http::Role::kRead, .name_space = "team"});
  const std::string writer = add({.name = "ci"});
  const auto tokens = http::TokenFile::Open(path).value();
  Api api(service_, metrics_, nullptr, {.access = {.tokens = tokens.get()}});
  EXPECT_EQ(Ask(api, "GET", "/v1/me", "", "Bearer " + reader).body,
            R"({"user":"tv","name_space":"team","may_change":false})");
  EXPECT_EQ(Ask(api, "GET", "/v1/me", "", "Bearer " + writer).body,
            R"({"user":"ci","name_space":"","may_change":true})");
  Api open(service_, metrics_, nullptr, {});
  EXPECT_EQ(Ask(open, "GET", "/v1/me").body, R"({"user":null,"name_space":"","may_change":true})");
}

using namespace std::chrono_literals;

TEST(ReadinessTest, ChecksTheDatabaseOnlyNowAndThen) {
  VirtualClock clock;
  int checks = 0;
  Readiness readiness(
      [&]() -> Status {
        ++checks;
        return Ok();
      },
      clock);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(readiness.Check().ok());
  EXPECT_EQ(checks, 1);
  clock.Advance(Readiness::kValidity);
  EXPECT_TRUE(readiness.Check().ok());
  EXPECT_EQ(checks, 2);
}

TEST(ReadinessTest, FailuresAreKeptAsLongAndThenGone) {
  VirtualClock clock;
  Status state = Error{ErrorCode::kUnavailable, "the disk is full"};
  Readiness readiness([&] { return state; }, clock);
  EXPECT_EQ(readiness.Check().error().message, "the disk is full");
  state = Ok();
  EXPECT_FALSE(readiness.Check().ok());
  clock.Advance(Readiness::kValidity);
  EXPECT_TRUE(readiness.Check().ok());
}

TEST(ReadinessTest, NoCallerWaitsBehindACheckThatHangs) {
  SystemClock clock;
  std::promise<void> begun;
  std::promise<void> end;
  Readiness readiness(
      [&]() -> Status {
        begun.set_value();
        end.get_future().wait();
        return Ok();
      },
      clock);
  auto first = std::async(std::launch::async, [&] { return readiness.Check().ok(); });
  begun.get_future().wait();
  EXPECT_FALSE(readiness.Check().ok());  // At once: nothing is known yet.
  end.set_value();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(readiness.Check().ok());
}

}  // namespace api_test
}  // namespace zeus::server
