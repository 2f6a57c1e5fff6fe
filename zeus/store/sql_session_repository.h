#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/plan/session_repository.h"
#include "zeus/store/sql_database.h"

namespace zeus {

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
  // Changes a session that is locked meanwhile.
  using Change = std::function<Status(const PipelineSession& session, SqlTransaction& rows)>;
  Status ChangeSession(const std::string& id, const Change& change);

  const std::shared_ptr<SqlDatabase> database_;
};

}  // namespace zeus
