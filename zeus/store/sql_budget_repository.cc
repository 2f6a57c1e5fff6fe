#include "zeus/store/sql_budget_repository.h"

#include <string>
#include <vector>

#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_job_transaction.h"

namespace zeus {
namespace {

const std::string kServersTable = "budget_servers";
const std::string kServerColumns = "id, incarnation, settings";
const std::string kServer = "server";  // The only row.

struct ServerRow {
  std::uint64_t incarnation = 0;
  std::string settings{};
};

Result<ServerRow> ServerFrom(SqlRow row) {
  RowReader reader(kServersTable, std::move(row));
  (void)reader.Text();
  ServerRow server;
  server.incarnation = static_cast<std::uint64_t>(reader.Integer());
  server.settings = reader.Text();
  ZEUS_RETURN_IF_ERROR(reader.status());
  return server;
}

Result<budget::StoredNode> StoredNodeFrom(SqlRow row) {
  RowReader reader("budget_nodes", std::move(row));
  auto node = reader.Checked(budget::ParseStoredNode(reader.Text()));
  ZEUS_RETURN_IF_ERROR(reader.status());
  return node;
}

Status CheckIncarnation(const ServerRow& server, std::uint64_t incarnation) {
  if (server.incarnation != incarnation) return budget::NoLongerCurrent();
  return Ok();
}

Result<ServerRow> LockServer(SqlTransaction& rows) {
  SqlAnswer answer;
  ZEUS_TRY(const bool there, rows.Lock(kServersTable, kServer, kServerColumns, answer));
  if (!there) return ServerRow{};
  return ServerFrom(std::move(answer.rows.front()));
}

Status WriteChange(SqlTransaction& rows, const budget::BudgetRepository::Change& change) {
  for (const budget::StoredNode& node : change.nodes) {
    SqlRow row = Values(node.name, budget::StoredNodeText(node));
    ZEUS_RETURN_IF_ERROR(CheckValues(row, "a node"));
    rows.Write(
        "INSERT INTO budget_nodes (name, state) VALUES ($1, $2)"
        " ON CONFLICT (name) DO UPDATE SET state = excluded.state",
        std::move(row));
  }
  for (const std::string& name : change.removed)
    if (const auto removed = rows.Change("DELETE FROM budget_nodes WHERE name = $1", Values(name));
        !removed.ok())
      return removed.error();
  if (!change.settings) return Ok();
  SqlRow row = Values(kServer, *change.settings);
  ZEUS_RETURN_IF_ERROR(CheckValues(row, "settings of a budget"));
  rows.Write("UPDATE budget_servers SET settings = $2 WHERE id = $1", std::move(row));
  return Ok();
}

}  // namespace

Result<budget::BudgetRepository::Start> SqlBudgetRepository::Begin() {
  Start start;
  ZEUS_RETURN_IF_ERROR(database_->Write([&](StoreTransaction& transaction) -> Status {
    SqlTransaction& rows = transaction.rows();
    ZEUS_TRY(const bool first, rows.InsertNew(kServersTable, kServerColumns,
                                              Values(kServer, std::int64_t{0}, std::string())));
    ServerRow server;
    if (!first) {
      ZEUS_TRY(server, LockServer(rows));
    }
    start.incarnation = server.incarnation + 1;
    start.settings = server.settings;
    ZEUS_TRY(SqlAnswer answer, rows.Ask("SELECT state FROM budget_nodes ORDER BY name", {}));
    ZEUS_TRY(start.nodes, AllFrom(std::move(answer), StoredNodeFrom));
    rows.Write("UPDATE budget_servers SET incarnation = $2 WHERE id = $1",
               Values(kServer, static_cast<std::int64_t>(start.incarnation)));
    return Ok();
  }));
  return start;
}

Status SqlBudgetRepository::Save(std::uint64_t incarnation, const Change& change) {
  return database_->Write([&](StoreTransaction& transaction) -> Status {
    SqlTransaction& rows = transaction.rows();
    ZEUS_TRY(const ServerRow server, LockServer(rows));
    ZEUS_RETURN_IF_ERROR(CheckIncarnation(server, incarnation));
    return WriteChange(rows, change);
  });
}

Status SqlBudgetRepository::CheckCurrent(std::uint64_t incarnation) {
  ZEUS_TRY(SqlAnswer answer,
           database_->Read("SELECT " + kServerColumns + " FROM budget_servers WHERE id = $1",
                           Values(kServer)));
  if (answer.rows.empty()) return budget::NoLongerCurrent();
  ZEUS_TRY(const ServerRow server, ServerFrom(std::move(answer.rows.front())));
  return CheckIncarnation(server, incarnation);
}

}  // namespace zeus
