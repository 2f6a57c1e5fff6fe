#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/job/job_service.h"

namespace zeus {

// Sends the reports of a trial one after the other, and heartbeats between them, without holding up
// the run: while the server is away both are tried again. Thread-safe.
class TrialReporter {
 public:
  // Service and clock must outlive it. Without a thread, who has it calls Step().
  enum class Thread { kOwn, kNone };
  TrialReporter(JobService& service, Clock& clock, const Trial& trial, Seconds lease,
                Thread thread = Thread::kOwn);

  void Push(TrialReport report);

  // What the service said last; changes until it says to stop.
  std::optional<ReportAnswer> answer() const;
  // Why it will not hear of this trial any more: it was deleted, or ended by somebody else.
  std::optional<Error> refusal() const;
  // Why reports are waiting; nullopt when the service answered last time.
  std::optional<Error> trouble() const;

  // Waits until everything is sent and answered; false when `patience` was over before, or
  // `give_up` said so.
  bool Flush(Seconds patience, const std::function<bool()>& give_up = nullptr);

  // Sends what is due. Returns when to come again.
  TimePoint Step();

 private:
  void Send(const TrialReport& report);
  void Beat();
  void Note(const Error& error);

  JobService& service_;
  Clock& clock_;
  const std::string job_id_;
  const std::int64_t trial_;
  const Seconds heartbeat_interval_;

  mutable std::mutex mutex_;  // Guards what follows.
  std::deque<TrialReport> waiting_;
  std::optional<ReportAnswer> answer_;
  std::optional<Error> refusal_;
  std::optional<Error> trouble_;
  TimePoint next_heartbeat_;
  TimePoint next_try_{};  // After trouble.
  Seconds pause_;

  std::unique_ptr<Ticker> ticker_;  // Last: it ends before the rest.
};

}  // namespace zeus
