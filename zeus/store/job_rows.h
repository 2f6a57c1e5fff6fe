#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "zeus/base/json.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/store/sql_connection.h"

// Jobs, trials and events as rows of their tables, and back.
namespace zeus {

// The columns, in the order of the rows below. Reading returns kInternal, naming the column, for
// values that this program cannot have written.
extern const std::string kJobColumns;
extern const std::string kTrialColumns;  // The key (job_id, number) first.
extern const std::string kTrialColumnsButKey;
extern const std::string kEventColumns;

Result<SqlRow> ToRow(const Job& job);
// The columns of a job that change: id, recurrences, trials, events, policy_state,
// least_cost_joules, least_cost_batch_size.
Result<SqlRow> UpdatedColumns(const Job& job);
inline constexpr std::size_t kStateColumn = 4;  // The index of policy_state among them.
Result<SqlRow> ToRow(const Trial& trial);
Result<SqlRow> ToRow(const JobEvent& event);

// A job whose spec (except the id) and state are not parsed yet.
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

// Caches the parsed specs and states of job rows, since parsing takes longer than the database. The
// key includes the text, so the cache is right whoever writes to the database. Bounded memory.
// Thread-safe.
class ParsedJobs {
 public:
  // Reads a row of kJobColumns.
  Result<Job> JobFrom(SqlRow row);

  // Puts a state into the cache that is about to be written, and will be read.
  void Expect(const std::string& id, std::string state_text, const Json& state);

 private:
  template <class T>
  struct Parsed {
    std::string text;
    T value;
  };
  template <class T>
  using Shared = std::shared_ptr<const Parsed<T>>;
  struct Entry {
    Shared<JobSpec> spec{};
    Shared<Json> state{};
  };

  Entry Find(const std::string& id);
  void Keep(const std::string& id, Entry entry);

  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;  // Guarded by mutex_.
  std::size_t bytes_ = 0;  // About the size of the texts. Guarded by mutex_.
};

}  // namespace zeus
