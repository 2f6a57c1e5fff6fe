#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/store/sql_connection.h"

// Jobs, trials and events as rows of their tables, and back. Reading gives kInternal, naming the
// column, for what this program cannot have written.
namespace zeus {

// The columns in the order of the rows below.
extern const std::string kJobColumns;
extern const std::string kTrialColumns;  // The key (job_id, number) first.
extern const std::string kTrialColumnsButKey;
extern const std::string kEventColumns;

// "$3, $4, $5"
std::string Placeholders(int first, int last);
std::string InsertInto(const std::string& table, const std::string& columns, int count);

// kInvalidArgument when a text is not UTF-8, kInternal when a number is not finite: JSON knows
// neither, and a state that comes back different would be worse than none.
Result<std::string> JsonText(const Json& json);

// What one engine would refuse or change the other must not take: PostgreSQL knows neither other
// encodings nor zero bytes, and would cut a text at one; SQLite has no NaN. `what` has the values.
Status CheckValues(const SqlRow& row, std::string_view what);

Result<SqlRow> RowOf(const Job& job);
// id, recurrences, trials, events, policy_state, least_cost_joules, least_cost_batch_size: what
// changes of a job.
Result<SqlRow> UpdatedColumns(const Job& job);
inline constexpr std::size_t kStateColumn = 4;  // Of these.
Result<SqlRow> RowOf(const Trial& trial);
Result<SqlRow> RowOf(const JobEvent& event);

// A job whose spec (but for the id) and state are still text.
struct JobTexts {
  static Result<JobTexts> From(SqlRow row);

  Job job{};
  std::string spec{};
  std::string state{};
};
Result<JobSpec> SpecFrom(const std::string& text);
Result<Json> StateFrom(const std::string& text);

Result<Trial> TrialFrom(SqlRow row);
Result<JobEvent> EventFrom(SqlRow row);

// All rows of an answer by one of the two above.
template <class T>
Result<std::vector<T>> AllFrom(SqlAnswer answer, Result<T> (*from)(SqlRow)) {
  std::vector<T> all;
  all.reserve(answer.rows.size());
  for (SqlRow& row : answer.rows) {
    ZEUS_TRY(T one, from(std::move(row)));
    all.push_back(std::move(one));
  }
  return all;
}

inline std::int64_t SqlTime(WallTime time) { return time.time_since_epoch().count(); }

}  // namespace zeus
