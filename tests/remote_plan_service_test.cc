// Checks that plans over a real connection equal those of the service behind it.
#include "zeus/client/remote_plan_service.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/http/server.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"
#include "zeus/plan/local_plan_service.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/testing/plan_samples.h"
#include "zeus/server/api.h"

namespace zeus {
namespace remote_plan_service_test {

using zeus::testing::APlanSpec;

class RemotePlanServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = http::Server::Start({.listen = "127.0.0.1:0"}, api_,
                                       metrics_.requests().connections(), clock_);
    ASSERT_TRUE(started.ok()) << started.error().message;
    server_ = std::move(started).value();
    auto connected =
        RemotePlanService::Connect(RemotePlanService::OptionsForSolving(server_->url()), clock_);
    ASSERT_TRUE(connected.ok()) << connected.error().message;
    remote_ = std::move(connected).value();
  }

  SystemClock clock_;
  MemoryRepository jobs_;
  MemoryPlanRepository repository_;
  LocalJobService job_service_{jobs_, clock_};
  LocalPlanService local_{repository_, clock_};
  server::ServerMetrics metrics_;
  server::Api api_{job_service_, metrics_, nullptr, {.plans = &local_}};
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<RemotePlanService> remote_;
};

TEST_F(RemotePlanServiceTest, APlanIsSubmittedReadAndDeleted) {
  const auto submitted = remote_->Submit(APlanSpec("a"));
  ASSERT_TRUE(submitted.ok()) << submitted.error().message;
  EXPECT_TRUE(submitted.value().created);
  EXPECT_FALSE(remote_->Submit(APlanSpec("a")).value().created);
  const CurrentPlan here = local_.Get("a").value();
  const CurrentPlan there = remote_->Get("a").value();
  EXPECT_TRUE(SameClocks(here.plan, there.plan));
  EXPECT_EQ(here.plan.energy, there.plan.energy);
  EXPECT_EQ(here.baseline_time, there.baseline_time);
  EXPECT_EQ(remote_->List("", 10).value(), std::vector<std::string>{"a"});
  EXPECT_EQ(remote_->List("a", 10).value(), std::vector<std::string>{});
  EXPECT_TRUE(remote_->Delete("a").ok());
  EXPECT_EQ(remote_->Get("a").error().code, ErrorCode::kNotFound);
}

TEST_F(RemotePlanServiceTest, AnIdIsMadeUpOnce) {
  const CurrentPlan made = remote_->Submit(APlanSpec("")).value();
  EXPECT_EQ(remote_->List("", 10).value(), std::vector<std::string>{made.id});
}

TEST_F(RemotePlanServiceTest, APaceTravelsThereAndTheNewPlanBack) {
  const CurrentPlan usual = remote_->Submit(APlanSpec("a")).value();
  EXPECT_FALSE(remote_->GetNewer("a", 1).value());
  const Seconds pace = usual.baseline_time * (1 + 1.0 / 7);
  const CurrentPlan slow = remote_->ReportPace("a", pace).value();
  EXPECT_EQ(slow.version, 2);
  EXPECT_EQ(slow.pace, pace);
  EXPECT_EQ(remote_->GetNewer("a", 1).value()->version, 2);
  const CurrentPlan gone = remote_->ReportPace("a", std::nullopt).value();
  EXPECT_EQ(gone.version, 3);
  EXPECT_EQ(gone.pace, std::nullopt);
}

TEST_F(RemotePlanServiceTest, FrontiersAndPlansForDeadlinesAreTheSame) {
  const CurrentPlan usual = remote_->Submit(APlanSpec("a")).value();
  const PlanFrontier here = local_.GetFrontier("a").value();
  const PlanFrontier there = remote_->GetFrontier("a").value();
  ASSERT_EQ(here.points.size(), there.points.size());
  EXPECT_EQ(here.points.back().ticks, there.points.back().ticks);
  EXPECT_EQ(here.fastest_time, there.fastest_time);
  const Seconds deadline = usual.baseline_time * (1 + 1.0 / 9);
  EXPECT_EQ(remote_->PlanFor("a", deadline).value().energy,
            local_.PlanFor("a", deadline).value().energy);
}

TEST_F(RemotePlanServiceTest, ErrorsAreThoseOfTheServiceBehind) {
  ASSERT_TRUE(remote_->Submit(APlanSpec("a")).ok());
  PlanSpec other = APlanSpec("a");
  other.microbatches = 5;
  EXPECT_EQ(remote_->Submit(other).error().code, ErrorCode::kConflict);
  const auto late = remote_->PlanFor("a", Seconds(0.01));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(late.error().message, local_.PlanFor("a", Seconds(0.01)).error().message);
  server_.reset();
  auto options = RemotePlanService::OptionsForSolving("http://127.0.0.1:1");
  options.retry.first_pause = Seconds(0);
  const auto nobody = RemotePlanService::Connect(options, clock_).value();
  EXPECT_EQ(nobody->Get("a").error().code, ErrorCode::kUnavailable);
}

}  // namespace remote_plan_service_test
}  // namespace zeus
