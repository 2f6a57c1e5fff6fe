#include "zeus/server/tenants.h"

#include <gtest/gtest.h>

#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"

namespace zeus::server {
namespace tenants_test {

class TenantsTest : public ::testing::Test {
 protected:
  static JobSpec Spec(const std::string& id) {
    return {.id = id,
            .batch_sizes = {32, 64},
            .default_batch_size = 64,
            .max_power = Watts(250),
            .gpu_model = "V100"};
  }
  Quotas::Count Counts() {
    return [this](const std::string& name_space) -> Result<Usage> {
      ZEUS_TRY(const JobCounts counts, repository_.Count(name_space));
      return Usage{.jobs = counts.jobs, .trials = counts.trials};
    };
  }

  VirtualClock clock_;
  MemoryRepository repository_;
  LocalJobService inner_{repository_, clock_};
  ScopedJobService blue_{inner_, "blue", nullptr};
  ScopedJobService red_{inner_, "red", nullptr};
  ScopedJobService plain_{inner_, "", nullptr};
};

TEST_F(TenantsTest, NoIdLeadsIntoAnotherNameSpace) {
  ASSERT_TRUE(blue_.Register(Spec("a")).ok());
  EXPECT_EQ(blue_.GetJob("a").value().spec.id, "a");
  for (JobService* other : std::initializer_list<JobService*>{&red_, &plain_})
    for (const char* id : {"a", "blue/a", "/a", "../blue/a"}) {
      EXPECT_EQ(other->GetJob(id).error().code, ErrorCode::kNotFound) << id;
      EXPECT_EQ(other->Delete(id).error().code, ErrorCode::kNotFound) << id;
      EXPECT_EQ(other->StartTrial({.job_id = id}).error().code, ErrorCode::kNotFound) << id;
    }
  EXPECT_FALSE(plain_.Register(Spec("blue/b")).ok());
}

TEST_F(TenantsTest, PagesHaveWhatIsOnesOwnHoweverOthersLieBetween) {
  for (const char* id : {"a", "blue", "blue-x", "c", "z"})
    ASSERT_TRUE(plain_.Register(Spec(id)).ok());
  for (const char* id : {"m1", "m2", "m3"}) ASSERT_TRUE(blue_.Register(Spec(id)).ok());
  for (int limit : {1, 2, 3, 100}) {
    for (auto& [service, count] :
         {std::pair<JobService*, std::size_t>{&plain_, 5}, {&blue_, 3}, {&red_, 0}}) {
      std::vector<std::string> ids;
      for (bool more = true; more;) {
        const auto page =
            service->ListJobs({.after = ids.empty() ? "" : ids.back(), .limit = limit}).value();
        for (const Job& job : page) ids.push_back(job.spec.id);
        more = std::ssize(page) == limit;
      }
      EXPECT_EQ(ids.size(), count) << limit;
      EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    }
  }
}

TEST_F(TenantsTest, AQuotaIsExact) {
  Quotas quotas(Counts());
  ASSERT_TRUE(quotas.Add("blue:jobs=2,trials=1").ok());
  ASSERT_TRUE(quotas.Add("*:jobs=0").ok());
  ScopedJobService blue(inner_, "blue", &quotas);
  EXPECT_TRUE(blue.Register(Spec("a")).ok());
  EXPECT_TRUE(blue.Register(Spec("b")).ok());
  EXPECT_TRUE(blue.Register(Spec("a")).ok()) << "it is there already";
  EXPECT_EQ(blue.Register(Spec("c")).error().code, ErrorCode::kPermissionDenied);
  EXPECT_TRUE(blue.StartTrial({.job_id = "a"}).ok());
  EXPECT_EQ(blue.StartTrial({.job_id = "b"}).error().code, ErrorCode::kPermissionDenied);
  ScopedJobService red(inner_, "red", &quotas);
  EXPECT_EQ(red.Register(Spec("a")).error().code, ErrorCode::kPermissionDenied);
}

}  // namespace tenants_test
}  // namespace zeus::server
