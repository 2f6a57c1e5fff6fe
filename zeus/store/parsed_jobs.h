#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "zeus/base/json.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// Keeps what the texts of job rows meant when they were last read: parsing takes longer than the
// database does. A text that changed is parsed again, so nothing here is ever out of date, whoever
// writes to the database. Bounded. Thread-safe.
class ParsedJobs {
 public:
  // The job of a row of kJobColumns.
  Result<Job> JobFrom(SqlRow row);

  // What is going to be read.
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
  std::size_t bytes_ = 0;                           // Guarded by mutex_; of their texts, about.
};

}  // namespace zeus
