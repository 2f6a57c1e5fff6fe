#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/client/retry_policy.h"
#include "zeus/job/job_service.h"

// Trainings start and end whether or not their service answers. A run that gets no answer chooses
// its batch size here, and what the service did not learn about a run is kept in a file ("spooled")
// until the next start of the job delivers it.
namespace zeus {

// Cancels the calls of a service that still wait for an answer when `timeout` has passed, until it
// is destroyed. Real time only. The service must outlive it.
class CallDeadline {
 public:
  CallDeadline(JobService& service, Seconds timeout);
  CallDeadline(const CallDeadline&) = delete;
  CallDeadline& operator=(const CallDeadline&) = delete;

 private:
  SystemClock clock_;
  std::unique_ptr<Ticker> ticker_;  // Null where the system gives no thread: calls time out later.
};

// A run whose results the service does not have yet.
struct KeptTrial {
  std::string where{};  // The address of the service.
  JobSpec spec{};
  TrialRequest request{};  // Its request id makes it one trial, however often it is delivered.
  std::int64_t trial = 0;  // The number that the service gave it; 0 when it gave none yet.
  std::optional<TrialReport> report{};  // The latest one: reports are cumulative.
  std::optional<TrialEnd> end{};        // nullopt while the run is going on.
  ProcessIdentity runner{};
};

// The kept trials of a folder, one file for each ("zeus.kept_trial/1", docs/formats.md), and the
// batch size that each job used last. Processes may share the folder: every file is replaced as a
// whole. Without a folder nothing is kept.
class TrialSpool {
 public:
  explicit TrialSpool(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Replaces the kept trial of the same request, if there is one.
  Status Save(const KeptTrial& trial) const;
  void Remove(const KeptTrial& trial) const;
  // Returns the trials of this job that have ended or whose runner has died, oldest first. Files
  // that cannot be read are skipped.
  std::vector<KeptTrial> Waiting(const std::string& where, const std::string& job) const;

  void RememberBatchSize(const std::string& where, const std::string& job, int batch_size) const;
  std::optional<int> LastBatchSize(const std::string& where, const std::string& job) const;

 private:
  std::filesystem::path TrialFile(const KeptTrial& trial) const;
  std::filesystem::path BatchSizeFile(const std::string& where, const std::string& job) const;

  std::filesystem::path folder_;
};

// A JobService that lets trainings start although the real one does not answer. At the start of a
// run the real service is asked until Options::start_timeout has passed. Then the run gets the
// batch size that the job used last, or the default one, as an own trial of this object; own trials
// have negative numbers. Their reports are answered here: the target, the greatest number of epochs
// and the deadline end them. Their results are saved with every report, and delivered to the real
// service at the end of the run if it answers by then, otherwise by the next start of the job by
// any process of this user.
//
// Errors that do not pass with time (a wrong token, another job of the same id) are returned as
// they are. Other calls are passed on. Thread-safe; service and clock must outlive it.
class SpoolingJobService final : public ForwardingJobService {
 public:
  struct Options {
    std::filesystem::path folder{};  // When empty, nothing is kept, and results are lost.
    std::string where{};  // The address of the service: only trials kept for it are delivered.
    Seconds start_timeout{30};
    // Called some times a second on the thread that made the service, while that thread waits for
    // an answer. True ends the wait, and stopped() tells that the answer is not one of the service.
    std::function<bool()> stop_requested{};

    // Keeps trials in the data folder of this user, for all jobs.
    static Options ForThisUser(std::string where, Seconds start_timeout);
  };

  SpoolingJobService(JobService& service, Clock& clock, Options options);

  Result<RegisteredJob> Register(const JobSpec& spec) override;
  Result<StartedTrial> StartTrial(const TrialRequest& request) override;
  Result<ReportAnswer> Report(const TrialReport& report) override;
  Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) override;
  Result<Trial> EndTrial(const TrialEnd& end) override;
  Result<Job> GetJob(const std::string& job_id) override;
  Result<Trial> GetTrial(const std::string& job_id, std::int64_t trial) override;

  // Whether the latest registration was not answered.
  bool offline() const;
  // Whether Options::stop_requested has ended a wait. Later calls are made all the same, but wait
  // for no more than kTimeoutOfASilentServer.
  bool stopped() const { return stopped_; }
  // Keeps how a trial ended whose last reports are not answered, for the next start to deliver.
  Status Keep(const Trial& trial, const TrialReport& last, const TrialEnd& end);

 private:
  struct OwnTrial {
    Trial trial{};
    KeptTrial kept{};
  };

  // Makes a call of the service, and cancels it when the caller is to stop.
  template <class Answer, class Ask>
  Answer Attended(const Ask& ask);
  bool SeeStop();
  void Pause(Seconds time);
  // Even with a start timeout of 0, a service gets the time to answer once.
  Seconds LongestCall() const;
  // Asks until there is an answer, an error that does not pass, or the start timeout is over.
  template <class Answer, class Ask>
  Result<Answer> AskUntilTimeout(const Ask& ask);
  RegisteredJob RegisterHere(JobSpec spec);
  Result<StartedTrial> StartHere(const TrialRequest& request);
  // Delivers the kept trials of a job; stops at the first one that gets no answer.
  void Deliver(const std::string& job_id);
  void AttendDelivery(const std::string& job_id);
  Status DeliverTrial(KeptTrial& kept);
  void Save(const OwnTrial& own);
  void FinishHere(OwnTrial& own, TrialStatus status, std::string reason);

  Clock& clock_;
  const Options options_;
  const TrialSpool spool_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<bool> stopped_{false};

  mutable std::mutex mutex_;  // Guards the members below; not held while the service is asked.
  std::optional<Job> job_{};  // The job that was registered last.
  bool offline_ = false;      // That job is registered here only.
  std::map<std::int64_t, OwnTrial> own_{};
  bool warned_of_loss_ = false;
};

}  // namespace zeus
