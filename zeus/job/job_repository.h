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

// The operations within one atomic change. Errors of the database are kUnavailable, after which the
// change may be repeated, or kInternal; either ends the change.
class JobTransaction {
 public:
  virtual ~JobTransaction() = default;

  // Locks the job until the change is committed, also against other servers. May return kNotFound.
  virtual Result<Job> LockJob(const std::string& id) = 0;
  // Returns kConflict when there is a job of this id.
  virtual Status InsertJob(const Job& job) = 0;
  // Writes all members but spec, seed and created_at.
  virtual Status UpdateJob(const Job& job) = 0;
  // Deletes the job with its trials and events. May return kNotFound.
  virtual Status DeleteJob(const std::string& id) = 0;

  // The functions below need the lock of the job.
  virtual Result<std::optional<Trial>> FindTrial(const std::string& job_id,
                                                 std::int64_t number) = 0;
  virtual Result<std::optional<Trial>> FindTrialByRequest(const std::string& job_id,
                                                          const std::string& request_id) = 0;
  virtual Result<bool> HasActiveTrial(const std::string& job_id, RunRole role) = 0;
  // Returns at most `limit` active trials whose lease ended before `now` of the lease clock, by
  // number.
  virtual Result<std::vector<Trial>> OverdueTrials(const std::string& job_id, WallTime now,
                                                   int limit) = 0;
  // Returns the trials ordered by attempt.
  virtual Result<std::vector<Trial>> TrialsOfRecurrence(const std::string& job_id,
                                                        std::int64_t recurrence) = 0;
  virtual Status InsertTrial(const Trial& trial) = 0;
  virtual Status UpdateTrial(const Trial& trial) = 0;
  virtual Status AppendEvent(const JobEvent& event) = 0;

  // Replaces the kept tick, unless that one is later. Needs no lock of a job.
  virtual Status KeepLeaseTick(const LeaseTick& tick) = 0;
};

struct JobQuery {
  std::string after{};  // Jobs with greater ids are listed, ascending.
  int limit = 100;
  std::optional<std::string> label{};        // Only jobs with this label are listed,
  std::optional<std::string> label_value{};  // and, if set, with this value of it.
};

struct TrialQuery {
  std::int64_t after = 0;  // Trials with greater numbers are listed, ascending.
  int limit = 100;
  std::optional<TrialStatus> status{};
};

struct JobCounts {
  std::int64_t jobs = 0;
  std::int64_t trials = 0;  // All trials of these jobs, also ended ones.
};

// Stores jobs, trials and events: in memory (MemoryRepository) or in a database (zeus/store).
// Thread-safe; several processes may share one database.
class JobRepository {
 public:
  using Change = std::function<Status(JobTransaction&)>;

  virtual ~JobRepository() = default;

  // Runs `change` in one transaction. If Write() returns Ok, everything that `change` did is on
  // disk; otherwise nothing is. `change` may be called several times when another server
  // interferes, so it must have no effects outside the transaction. Callers that wait at the same
  // time share a commit.
  virtual Status Write(const Change& change) = 0;

  // Reads see what was committed before they were called.
  virtual Result<Job> FindJob(const std::string& id) = 0;  // May return kNotFound.
  virtual Result<std::vector<Job>> ListJobs(const JobQuery& query) = 0;
  virtual Result<Trial> FindTrial(const std::string& job_id, std::int64_t number) = 0;
  virtual Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                                const TrialQuery& query) = 0;
  virtual Result<std::vector<JobEvent>> ListEvents(const std::string& job_id, std::int64_t after,
                                                   int limit) = 0;
  // Returns the ids of at most `limit` jobs with an active trial whose lease ended before `now`.
  virtual Result<std::vector<std::string>> JobsWithOverdueTrials(WallTime now, int limit) = 0;

  // Returns nullopt when no tick was ever kept.
  virtual Result<std::optional<LeaseTick>> FindLeaseTick() = 0;

  // Counts what a name space (identifier.h) holds.
  virtual Result<JobCounts> Count(const std::string& name_space) = 0;

  // Checks that the database accepts changes, by a small one without visible effect.
  virtual Status Ping() = 0;
};

}  // namespace zeus
