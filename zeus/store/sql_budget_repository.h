#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "zeus/budget/budget_repository.h"
#include "zeus/store/sql_database.h"

namespace zeus {

// A power budget in an SQL database. Every change locks the row that has the number of the latest
// start, so that no server changes anything once another has begun. Thread-safe.
class SqlBudgetRepository final : public budget::BudgetRepository {
 public:
  explicit SqlBudgetRepository(std::shared_ptr<SqlDatabase> database)
      : database_(std::move(database)) {}

  Result<Start> Begin() override;
  Status Save(std::uint64_t incarnation, const Change& change) override;
  Status CheckCurrent(std::uint64_t incarnation) override;

 private:
  const std::shared_ptr<SqlDatabase> database_;
};

}  // namespace zeus
