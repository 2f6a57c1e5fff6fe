#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/job/job_repository.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/session_repository.h"
#include "zeus/store/sql_database.h"

namespace zeus {

// Jobs in an SQL database. Thread-safe.
class SqlJobRepository final : public JobRepository {
 public:
  explicit SqlJobRepository(std::shared_ptr<SqlDatabase> database)
      : database_(std::move(database)) {}

  Status Write(const Change& change) override;
  Result<Job> FindJob(const std::string& id) override;
  Result<std::vector<Job>> ListJobs(const JobQuery& query) override;
  Result<Trial> FindTrial(const std::string& job_id, std::int64_t number) override;
  Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                        const TrialQuery& query) override;
  Result<std::vector<JobEvent>> ListEvents(const std::string& job_id, std::int64_t after,
                                           int limit) override;
  Result<std::vector<std::string>> JobsWithOverdueTrials(WallTime now, int limit) override;
  Result<std::optional<LeaseTick>> FindLeaseTick() override;
  Result<JobCounts> Count(const std::string& name_space) override;
  Status Ping() override;

 private:
  const std::shared_ptr<SqlDatabase> database_;
};

// Plans in an SQL database. Thread-safe.
class SqlPlanRepository final : public PlanRepository {
 public:
  explicit SqlPlanRepository(std::shared_ptr<SqlDatabase> database)
      : database_(std::move(database)) {}

  Status Insert(const PlanRecord& record, const PlanSpec& spec) override;
  Result<bool> Update(const PlanRecord& record) override;
  Status Delete(const std::string& id) override;
  Result<PlanRecord> Find(const std::string& id) override;
  Result<PlanSpec> FindSpec(const PlanRecord& record) override;
  Result<std::int64_t> Count(const std::string& name_space) override;
  Result<std::vector<std::string>> List(const std::string& after, int limit) override;

 private:
  const std::shared_ptr<SqlDatabase> database_;
};

class SqlTransaction;

// Sessions of pipelines in an SQL database. Thread-safe.
class SqlSessionRepository final : public SessionRepository {
 public:
  explicit SqlSessionRepository(std::shared_ptr<SqlDatabase> database)
      : database_(std::move(database)) {}

  Status Insert(const PipelineSession& session) override;
  Result<PipelineSession> Find(const std::string& id) override;
  Status MarkUsed(const std::string& id, WallTime at) override;
  Status AddRank(const std::string& id, const SessionRank& rank) override;
  Result<std::vector<SessionRank>> Ranks(const std::string& id) override;
  Status PutMeasurement(const std::string& id, const SessionMeasurement& measurement) override;
  Result<std::vector<SessionMeasurement>> Measurements(const std::string& id) override;
  Status EndRound(const PipelineSession& session) override;
  Status StartOver(const PipelineSession& session) override;
  Result<int> DeleteUnused(WallTime before, int limit) override;

 private:
  // Runs `change` on the session with its row locked.
  using Change = std::function<Status(const PipelineSession& session, SqlTransaction& rows)>;
  Status ChangeSession(const std::string& id, const Change& change);

  const std::shared_ptr<SqlDatabase> database_;
};

}  // namespace zeus
