#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/client/retry_policy.h"
#include "zeus/job/job_service.h"

namespace zeus {

// Sends the reports of a trial one after the other, and heartbeats between them, on a thread of its
// own. The thread that trains only queues reports and reads the answers that have arrived, so a
// service that is slow, away or hangs does not delay the training: what it did not answer is sent
// again, with growing pauses. Thread-safe.
class TrialReporter {
 public:
  // kNone: there is no thread, and the owner calls Step(), as tests and simulations do.
  enum class Thread { kOwn, kNone };

  // Service and clock must outlive the reporter. With a thread, the clock is a system clock.
  TrialReporter(JobService& service, Clock& clock, const Trial& trial, Seconds lease,
                Thread thread = Thread::kOwn);
  // Drops what is queued, and cancels the call that is under way.
  ~TrialReporter();
  TrialReporter(const TrialReporter&) = delete;
  TrialReporter& operator=(const TrialReporter&) = delete;

  // Queue a report, or the end of the trial. Neither waits. What comes after a refusal or an answer
  // to stop is ignored: the service has closed the trial.
  void Push(TrialReport report);
  void Push(TrialEnd end);

  // The latest answer to a report; it changes until the service answers that the run should stop.
  std::optional<ReportAnswer> answer() const;
  // Why the service accepts nothing more for this trial, for example because its job was deleted.
  std::optional<Error> refusal() const;
  // Why reports are waiting; nullopt when the service answered the latest call.
  std::optional<Error> trouble() const;
  // When the oldest entry of the queue was pushed; nullopt when the queue is empty.
  std::optional<TimePoint> waiting_since() const;

  // Waits until everything that was pushed is answered. Returns false when `timeout` passed before,
  // or `give_up` returned true.
  bool Flush(Seconds timeout, const std::function<bool()>& give_up = nullptr);

  // Sends what is due. Returns when to be called again.
  TimePoint Step();

 private:
  struct Entry {
    std::variant<TrialReport, TrialEnd> content;
    TimePoint pushed{};
  };

  void PushEntry(Entry entry);
  void Send(const TrialReport& report);
  void Send(const TrialEnd& end);
  void SendHeartbeat();
  // The following four are called with the mutex held.
  bool closed() const;
  void NoteAnswer();
  void NoteError(const Error& error);
  TimePoint NextStep(TimePoint now) const;

  JobService& service_;
  Clock& clock_;
  const std::string job_id_;
  const std::int64_t trial_;
  const Seconds heartbeat_interval_;

  mutable std::mutex mutex_;  // Guards the members below; not held during a call of the service.
  std::condition_variable changed_;
  std::deque<Entry> waiting_;  // An entry is removed when it is answered.
  bool reports_refused_ = false;
  bool ended_ = false;     // The service knows the end of the trial.
  bool calling_ = false;   // The thread is in a call of the service.
  bool stopping_ = false;  // The reporter is being destroyed and begins no more calls.
  std::optional<ReportAnswer> answer_;
  std::optional<Error> refusal_;
  std::optional<Error> trouble_;
  TimePoint next_heartbeat_;
  TimePoint next_try_{};  // No call is made before this moment.
  BackOff pauses_{kRetryUntilDeadline};

  std::unique_ptr<Ticker> ticker_;  // The last member: its thread ends before the others do.
};

}  // namespace zeus
