#include "zeus/store/retention.h"

#include <map>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/job/event_replay.h"
#include "zeus/store/open_connection.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_database.h"

namespace zeus {
namespace {

// The reports of one run.
struct Reports {
  std::string job{};
  std::int64_t trial = 0;
  std::int64_t events = 0;
  std::int64_t last = 0;  // Sequence number of the last one.
};

Result<Reports> ReportsFrom(SqlRow row) {
  RowReader reader("events", std::move(row));
  Reports reports;
  reports.job = reader.Text();
  reports.trial = reader.Integer();
  reports.events = reader.Integer();
  reports.last = reader.Integer();
  ZEUS_RETURN_IF_ERROR(reader.status());
  return reports;
}

// An expired run may be revived by a report, so only final ones count.
Result<std::vector<Reports>> FindReports(SqlConnection& connection, WallTime before) {
  const SqlRow values = Values(SqlTime(before));
  ZEUS_TRY(SqlAnswer answer,
           connection.Run("SELECT e.job_id, e.trial, COUNT(*), MAX(e.sequence) FROM events e "
                          "JOIN trials t ON t.job_id = e.job_id AND t.number = e.trial "
                          "WHERE e.kind = 'trial_reported' AND t.ended_at < $1 "
                          "AND t.status IN ('converged', 'stopped', 'failed') "
                          "GROUP BY e.job_id, e.trial HAVING COUNT(*) > 1 "
                          "ORDER BY e.job_id, e.trial",
                          values));
  return AllFrom(std::move(answer), ReportsFrom);
}

// Removes all reports of a run but the last, which notes how many are gone.
Status Remove(SqlConnection& connection, const Reports& reports) {
  const SqlRow last = Values(reports.job, reports.last);
  ZEUS_TRY(const SqlAnswer answer,
           connection.Run("SELECT detail FROM events WHERE job_id = $1 AND sequence = $2", last));
  if (answer.rows.empty()) return Ok();  // Another program was faster.
  RowReader reader("events", answer.rows.front());
  Json detail = reader.JsonValue();
  ZEUS_RETURN_IF_ERROR(reader.status());
  const SqlRow others = Values(reports.job, reports.trial, reports.last);
  ZEUS_TRY(const SqlAnswer removed,
           connection.Run("DELETE FROM events WHERE job_id = $1 AND trial = $2 AND sequence < $3 "
                          "AND kind = 'trial_reported'",
                          others));
  NoteRemovedReports(detail, removed.changed);
  ZEUS_TRY(std::string text, StorableJson(detail));
  return connection.Post("UPDATE events SET detail = $3 WHERE job_id = $1 AND sequence = $2",
                         Values(reports.job, reports.last, std::move(text)));
}

// Removes the reports of several runs of one job in one transaction.
Status RemoveAll(SqlConnection& connection, const std::vector<Reports>& runs) {
  ZEUS_RETURN_IF_ERROR(connection.Begin());
  for (const Reports& reports : runs)
    if (auto removed = Remove(connection, reports); !removed.ok()) {
      connection.Rollback();
      return removed;
    }
  return connection.Commit();
}

}  // namespace

Result<std::vector<PrunedJob>> PruneEpochs(const std::string& url, WallTime before,
                                           PruneMode mode) {
  ZEUS_TRY(const auto connection,
           OpenConnection(url, ConnectionUse::kRead));  // A database that is not there is not made.
  ZEUS_TRY(const std::vector<Reports> found, FindReports(*connection, before));
  std::map<std::string, std::vector<Reports>> by_job;
  std::vector<PrunedJob> pruned;
  for (const Reports& reports : found) {
    if (pruned.empty() || pruned.back().job != reports.job) pruned.push_back({.job = reports.job});
    ++pruned.back().trials;
    pruned.back().events += reports.events - 1;
    by_job[reports.job].push_back(reports);
  }
  if (mode == PruneMode::kDryRun || found.empty()) return pruned;
  ZEUS_TRY(const auto writer, OpenConnection(url, ConnectionUse::kWrite));
  ZEUS_RETURN_IF_ERROR(Migrate(*writer));
  for (const auto& [job, runs] : by_job) ZEUS_RETURN_IF_ERROR(RemoveAll(*writer, runs));
  return pruned;
}

}  // namespace zeus
