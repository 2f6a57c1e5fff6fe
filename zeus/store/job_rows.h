#pragma once

#include <string>

#include "zeus/base/json_fwd.h"
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

}  // namespace zeus
