#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/job/lease_clock.h"

namespace zeus {

// What can be done within one atomic change. Errors of the database are kUnavailable (try again) or
// kInternal; they end the change.
class JobTransaction {
 public:
  virtual ~JobTransaction() = default;

  // Locks the job until the change is committed, also against other servers. kNotFound.
  virtual Result<Job> LockJob(const std::string& id) = 0;
  // kConflict when there is a job of this id.
  virtual Status InsertJob(const Job& job) = 0;
  // Everything but spec, seed and created_at.
  virtual Status UpdateJob(const Job& job) = 0;
  // With its trials and events. kNotFound.
  virtual Status DeleteJob(const std::string& id) = 0;

  // Below, the job is locked.
  virtual Result<std::optional<Trial>> FindTrial(const std::string& job_id,
                                                 std::int64_t number) = 0;
  virtual Result<std::optional<Trial>> FindTrialByRequest(const std::string& job_id,
                                                          const std::string& request_id) = 0;
  virtual Result<bool> HasActiveTrial(const std::string& job_id, RunRole role) = 0;
  // Active, with a lease that ended before `now` of the lease clock; by number, at most `limit`.
  virtual Result<std::vector<Trial>> OverdueTrials(const std::string& job_id, WallTime now,
                                                   int limit) = 0;
  // By attempt.
  virtual Result<std::vector<Trial>> TrialsOfRecurrence(const std::string& job_id,
                                                        std::int64_t recurrence) = 0;
  virtual Status InsertTrial(const Trial& trial) = 0;
  virtual Status UpdateTrial(const Trial& trial) = 0;
  virtual Status AppendEvent(const JobEvent& event) = 0;

  // Instead of the one that is kept, unless that is later. Needs no lock.
  virtual Status KeepLeaseTick(const LeaseTick& tick) = 0;
};

struct JobQuery {
  std::string after{};  // Ids greater than this, ascending.
  int limit = 100;
  std::optional<std::string> label{};        // Only jobs that have this label …
  std::optional<std::string> label_value{};  // … with this value.
};

struct TrialQuery {
  std::int64_t after = 0;  // Numbers greater than this, ascending.
  int limit = 100;
  std::optional<TrialStatus> status{};
};

struct JobCounts {
  std::int64_t jobs = 0;
  std::int64_t trials = 0;  // Trials of these jobs, those that have ended included.
};

// Where jobs live. Thread-safe; several processes may share one database.
class JobRepository {
 public:
  using Change = std::function<Status(JobTransaction&)>;

  virtual ~JobRepository() = default;

  // Runs `change` in one transaction. When it returns Ok, what it did is on disk, all of it; when
  // it returns an error, nothing is. `change` may be called again when another server was in the
  // way, so it must not do anything else than use the transaction. Changes of callers that wait at
  // the same time share a commit.
  virtual Status Write(const Change& change) = 0;

  // Reads see what was committed before they were called.
  virtual Result<Job> FindJob(const std::string& id) = 0;  // kNotFound.
  virtual Result<std::vector<Job>> ListJobs(const JobQuery& query) = 0;
  virtual Result<Trial> FindTrial(const std::string& job_id, std::int64_t number) = 0;
  virtual Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                                const TrialQuery& query) = 0;
  virtual Result<std::vector<JobEvent>> ListEvents(const std::string& job_id, std::int64_t after,
                                                   int limit) = 0;
  // Ids of jobs with an active trial whose lease ended before `now`, at most `limit`.
  virtual Result<std::vector<std::string>> JobsWithOverdueTrials(WallTime now, int limit) = 0;

  // nullopt: none was ever kept.
  virtual Result<std::optional<LeaseTick>> FindLeaseTick() = 0;

  // Counts what a name space (identifier.h) holds.
  virtual Result<JobCounts> Count(const std::string& name_space) = 0;

  // Whether the database takes changes: makes a small one that nobody sees.
  virtual Status Ping() = 0;
};

}  // namespace zeus
