#include "zeus/client/trial_reporter.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace zeus {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kPollPeriod = 10ms;
constexpr Seconds kFirstReportPause = 200ms;
constexpr Seconds kLongestReportPause = 10s;
// Two heartbeats may be lost.
constexpr double kReporterBeatsPerLease = 3;

}  // namespace

TrialReporter::TrialReporter(JobService& service, Clock& clock, const Trial& trial, Seconds lease,
                             Thread thread)
    : service_(service),
      clock_(clock),
      job_id_(trial.job_id),
      trial_(trial.number),
      heartbeat_interval_(lease / kReporterBeatsPerLease),
      next_heartbeat_(clock.Now() + heartbeat_interval_),
      pause_(kFirstReportPause) {
  if (thread == Thread::kOwn)
    ticker_ = std::make_unique<Ticker>("zeus-reports", [this] { return Step(); });
}

void TrialReporter::Push(TrialReport report) {
  const std::lock_guard lock(mutex_);
  if (refusal_ || (answer_ && answer_->stop)) return;
  waiting_.push_back(std::move(report));
}

std::optional<ReportAnswer> TrialReporter::answer() const {
  const std::lock_guard lock(mutex_);
  return answer_;
}

std::optional<Error> TrialReporter::refusal() const {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

std::optional<Error> TrialReporter::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

bool TrialReporter::Flush(Seconds patience, const std::function<bool()>& give_up) {
  const TimePoint deadline = clock_.Now() + patience;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return true;
    }
    if (clock_.Now() >= deadline || (give_up && give_up())) return false;
    if (ticker_ == nullptr) Step();
    clock_.SleepFor(kPollPeriod);
  }
}

TimePoint TrialReporter::Step() {
  const TimePoint now = clock_.Now();
  std::optional<TrialReport> report;
  bool beat = false;
  {
    const std::lock_guard lock(mutex_);
    if (refusal_ || (answer_ && answer_->stop) || now < next_try_) return now + kPollPeriod;
    // It stays at the front until it is answered: Flush() waits for that.
    if (!waiting_.empty()) report = waiting_.front();
    beat = now >= next_heartbeat_;
  }
  if (report) {
    Send(*report);
  } else if (beat) {
    Beat();
  }
  return clock_.Now() + kPollPeriod;
}

void TrialReporter::Send(const TrialReport& report) {
  const auto answer = service_.Report(report);
  const std::lock_guard lock(mutex_);
  if (!answer.ok()) return Note(answer.error());
  trouble_.reset();
  pause_ = kFirstReportPause;
  next_heartbeat_ = clock_.Now() + heartbeat_interval_;  // A report is a sign of life.
  waiting_.pop_front();
  answer_ = answer.value();
  if (answer_->stop) waiting_.clear();
}

void TrialReporter::Beat() {
  const auto trial = service_.Heartbeat(job_id_, trial_);
  const std::lock_guard lock(mutex_);
  next_heartbeat_ = clock_.Now() + heartbeat_interval_;
  if (!trial.ok()) return Note(trial.error());
  trouble_.reset();
  pause_ = kFirstReportPause;
}

// Under the lock.
void TrialReporter::Note(const Error& error) {
  if (!error.retryable()) {
    refusal_ = error;
    waiting_.clear();
    return;
  }
  trouble_ = error;
  next_try_ = clock_.Now() + pause_;
  pause_ = std::min(2 * pause_, kLongestReportPause);
}

}  // namespace zeus
