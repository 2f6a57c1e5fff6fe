#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/http/message.h"
#include "zeus/job/job_service.h"
#include "zeus/plan/plan_service.h"

// Tenants share one database. Each has a name space, sees its own ids without the name space in
// them, and nothing of the others: an id that names another name space is not found. Quotas limit
// how much a name space may hold.
namespace zeus::server {

// The number of things that a name space holds.
struct Usage {
  std::int64_t jobs = 0;
  std::int64_t trials = 0;  // Trials of these jobs, including those that have ended.
  std::int64_t plans = 0;
};

// The limits of a name space; nullopt: no limit.
struct Quota {
  std::optional<std::int64_t> jobs{};
  std::optional<std::int64_t> trials{};
  std::optional<std::int64_t> plans{};
};

// The quotas of all name spaces. They are exact within one server; several servers on one database
// may exceed a quota by the number of things that they add at the same moment. Thread-safe.
class Quotas {
 public:
  using Count = std::function<Result<Usage>(const std::string& name_space)>;

  explicit Quotas(Count count) : count_(std::move(count)) {}

  // Adds a quota like "team:jobs=10,trials=1000,plans=5". "*" is the quota of name spaces without
  // one of their own, and ":jobs=10" that of the default name space. All calls must precede the
  // first request.
  Status Add(std::string_view text);

  // The name spaces with a quota of their own.
  std::set<std::string> name_spaces() const;

  // A lock to hold while something is added. Empty where no quota applies.
  using Guard = std::unique_lock<std::mutex>;
  // Both return kPermissionDenied when the name space may not hold one more.
  Result<Guard> BeforeJob(const std::string& name_space);
  Result<Guard> BeforeTrial(const std::string& name_space);
  // Holds no lock, since making a plan can take long: plans that are submitted at the same moment
  // may exceed the quota.
  Status CheckPlan(const std::string& name_space);

 private:
  using Limit = std::optional<std::int64_t> Quota::*;
  using Held = std::int64_t Usage::*;
  Result<Guard> Before(const std::string& name_space, Limit limit, Held held,
                       std::string_view things);

  const Count count_;
  std::map<std::string, Quota, std::less<>> quotas_{};
  std::mutex mutex_;
};

// Returns the id in the database of a tenant's id, or kNotFound when the text contains a name
// space.
Result<std::string> InnerId(const std::string& name_space, const std::string& id);

// A tenant's view of the jobs. Cheap to make and to copy: each request has its own. Thread-safe;
// the inner service and the quotas must outlive it.
class ScopedJobService final : public JobService {
 public:
  // `quotas` may be null.
  ScopedJobService(JobService& inner, std::string name_space, Quotas* quotas)
      : inner_(inner), name_space_(std::move(name_space)), quotas_(quotas) {}

  Result<RegisteredJob> Register(const JobSpec& spec) override;
  Status Delete(const std::string& job_id) override;
  Result<StartedTrial> StartTrial(const TrialRequest& request) override;
  Result<ReportAnswer> Report(const TrialReport& report) override;
  Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) override;
  Result<Trial> EndTrial(const TrialEnd& end) override;
  Status LearnEpochCost(const EpochCostReport& report) override;
  Result<Job> GetJob(const std::string& job_id) override;
  Result<std::vector<Job>> ListJobs(const JobQuery& query) override;
  Result<Trial> GetTrial(const std::string& job_id, std::int64_t trial) override;
  Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                        const TrialQuery& query) override;
  Result<JobArms> GetArms(const std::string& job_id, const std::string& gpu_model) override;
  Result<JobSavings> GetSavings(const SavingsQuery& query) override;
  Result<std::vector<JobEvent>> ListEvents(const std::string& job_id, std::int64_t after,
                                           int limit) override;

  const std::string& name_space() const { return name_space_; }

 private:
  JobService& inner_;
  const std::string name_space_;
  Quotas* const quotas_;
};

// A tenant's view of the plans; otherwise as ScopedJobService.
class ScopedPlanService final : public PlanService {
 public:
  ScopedPlanService(PlanService& inner, std::string name_space, Quotas* quotas)
      : inner_(inner), name_space_(std::move(name_space)), quotas_(quotas) {}

  Result<CurrentPlan> Submit(const PlanSpec& spec) override;
  Result<CurrentPlan> Get(const std::string& id) override;
  Result<std::optional<CurrentPlan>> GetNewer(const std::string& id, std::int64_t version) override;
  Result<PlanFrontier> GetFrontier(const std::string& id) override;
  Result<pipeline::PipelinePlan> PlanFor(const std::string& id, Seconds deadline) override;
  Result<CurrentPlan> ReportPace(const std::string& id, std::optional<Seconds> pace) override;
  Result<PlanSummary> Summarize(const std::string& id) override;
  Result<std::vector<std::string>> List(const std::string& after, int limit) override;
  Status Delete(const std::string& id) override;

 private:
  PlanService& inner_;
  const std::string name_space_;
  Quotas* const quotas_;
};

// Turns functions that take a tenant's view into handlers of routes. The service and the quotas
// must outlive the handlers.
struct JobTenants {
  JobService& service;
  Quotas* quotas = nullptr;

  template <class Handle>
  auto Jobs(Handle handle) const {
    return [*this, handle](const http::Request& request) -> Result<http::Answer> {
      ScopedJobService scoped(service, request.name_space, quotas);
      return handle(scoped, request);
    };
  }
};

// As JobTenants, for plans.
struct PlanTenants {
  PlanService& service;
  Quotas* quotas = nullptr;

  template <class Handle>
  auto Plans(Handle handle) const {
    return [*this, handle](const http::Request& request) -> Result<http::Answer> {
      ScopedPlanService scoped(service, request.name_space, quotas);
      return handle(scoped, request);
    };
  }
};

}  // namespace zeus::server
