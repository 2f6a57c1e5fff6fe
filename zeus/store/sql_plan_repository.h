#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/plan/plan_repository.h"
#include "zeus/store/sql_database.h"

namespace zeus {

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

}  // namespace zeus
