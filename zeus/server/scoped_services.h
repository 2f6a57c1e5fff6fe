#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/job/job_service.h"
#include "zeus/plan/plan_service.h"
#include "zeus/server/http_message.h"
#include "zeus/server/quotas.h"

// One tenant's view of what many share: its own ids, without its name in them, and nothing of the
// others. An id that names another name space is not found, whoever asks.
namespace zeus::server {

// The id within the database. kNotFound when the text is no id of a tenant's own.
Result<std::string> InnerId(const std::string& name_space, const std::string& id);

// Cheap to make and to copy: one per request. Thread-safe; what it is given must outlive it.
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

// As ScopedJobService, for plans.
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
  Result<std::vector<std::string>> List(const std::string& after, int limit) override;
  Status Delete(const std::string& id) override;

 private:
  PlanService& inner_;
  const std::string name_space_;
  Quotas* const quotas_;
};

// Makes handlers of routes from functions that take the view of the tenant who asks. What it refers
// to must outlive the handlers.
struct JobTenants {
  JobService& service;
  Quotas* quotas = nullptr;

  template <class Handle>
  auto Jobs(Handle handle) const {
    return [*this, handle](const HttpRequest& request) -> Result<HttpAnswer> {
      ScopedJobService scoped(service, request.name_space, quotas);
      return handle(scoped, request);
    };
  }
};

struct PlanTenants {
  PlanService& service;
  Quotas* quotas = nullptr;

  template <class Handle>
  auto Plans(Handle handle) const {
    return [*this, handle](const HttpRequest& request) -> Result<HttpAnswer> {
      ScopedPlanService scoped(service, request.name_space, quotas);
      return handle(scoped, request);
    };
  }
};

}  // namespace zeus::server
