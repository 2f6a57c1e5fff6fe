#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/colosseum/duel_repository.h"
#include "zeus/store/sql_database.h"

namespace zeus {

// Duels in an SQL database. A vote is a row whose key is duel and ballot. Thread-safe.
class SqlDuelRepository final : public colosseum::DuelRepository {
 public:
  explicit SqlDuelRepository(std::shared_ptr<SqlDatabase> database)
      : database_(std::move(database)) {}

  Status Insert(const colosseum::Duel& duel) override;
  Result<colosseum::Duel> Find(const std::string& id) override;
  Status Update(const std::string& id, const Change& change) override;
  Result<std::vector<colosseum::Duel>> ListRevealed(const colosseum::DuelQuery& query) override;
  Result<std::vector<colosseum::Game>> Games() override;
  Result<std::vector<std::string>> Overdue(WallTime before, int limit) override;
  Status Ping() override { return database_->Ping(); }

 private:
  const std::shared_ptr<SqlDatabase> database_;
};

}  // namespace zeus
