#include "zeus/client/trial_reporter.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace zeus {
namespace {

using namespace std::chrono_literals;

// How often Flush() asks whether to give up, and a call that is to be cancelled is cancelled.
constexpr std::chrono::milliseconds kFlushPollPeriod = 10ms;
constexpr double kHeartbeatsPerLease = 3;  // Two of them may be lost.

}  // namespace

TrialReporter::TrialReporter(JobService& service, Clock& clock, const Trial& trial, Seconds lease,
                             Thread thread)
    : service_(service),
      clock_(clock),
      job_id_(trial.job_id),
      trial_(trial.number),
      heartbeat_interval_(lease / kHeartbeatsPerLease),
      next_heartbeat_(clock.Now() + heartbeat_interval_) {
  if (thread == Thread::kOwn)
    ticker_ = std::make_unique<Ticker>("zeus-reports", [this] { return Step(); });
}

TrialReporter::~TrialReporter() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  // A cancellation reaches only calls that have begun to wait, so it is repeated.
  while (calling_) {
    lock.unlock();
    service_.CancelCalls();
    lock.lock();
    changed_.wait_for(lock, kFlushPollPeriod, [this] { return !calling_; });
  }
}

void TrialReporter::Push(TrialReport report) {
  PushEntry({.content = std::move(report), .pushed = clock_.Now()});
}

void TrialReporter::Push(TrialEnd end) {
  PushEntry({.content = std::move(end), .pushed = clock_.Now()});
}

void TrialReporter::PushEntry(Entry entry) {
  {
    const std::lock_guard lock(mutex_);
    if (closed()) return;
    waiting_.push_back(std::move(entry));
  }
  if (ticker_ != nullptr) ticker_->Wake();
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

std::optional<TimePoint> TrialReporter::waiting_since() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() ? std::nullopt : std::optional(waiting_.front().pushed);
}

bool TrialReporter::Flush(Seconds timeout, const std::function<bool()>& give_up) {
  const TimePoint deadline = clock_.Now() + timeout;
  std::unique_lock lock(mutex_);
  while (!waiting_.empty()) {
    lock.unlock();
    const Seconds left = deadline - clock_.Now();
    if (left <= 0s || (give_up && give_up())) return false;
    if (ticker_ == nullptr) {
      Step();
      clock_.SleepFor(kFlushPollPeriod);
    }
    lock.lock();
    if (ticker_ != nullptr)
      changed_.wait_for(lock, std::min<Seconds>(left, kFlushPollPeriod),
                        [this] { return waiting_.empty(); });
  }
  return true;
}

bool TrialReporter::closed() const {
  return reports_refused_ || ended_ || (answer_ && answer_->stop);
}

TimePoint TrialReporter::NextStep(TimePoint now) const {
  if (closed() || stopping_) return Ticker::kWhenWoken;
  if (!waiting_.empty()) return std::max(now, next_try_);
  return refusal_ ? Ticker::kWhenWoken : std::max(next_heartbeat_, next_try_);
}

TimePoint TrialReporter::Step() {
  std::optional<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    const TimePoint due = NextStep(now);
    if (due > now) return due;
    if (!waiting_.empty()) entry = waiting_.front();
    calling_ = true;
  }
  if (entry) {
    std::visit([this](const auto& content) { Send(content); }, entry->content);
  } else {
    SendHeartbeat();
  }
  const std::lock_guard lock(mutex_);
  calling_ = false;
  changed_.notify_all();
  return NextStep(clock_.Now());
}

void TrialReporter::Send(const TrialReport& report) {
  const auto answer = service_.Report(report);
  const std::lock_guard lock(mutex_);
  if (!answer.ok()) {
    reports_refused_ = !answer.error().retryable();
    return NoteError(answer.error());
  }
  NoteAnswer();
  answer_ = answer.value();
  if (answer_->stop) waiting_.clear();
}

void TrialReporter::Send(const TrialEnd& end) {
  const auto ended = service_.EndTrial(end);
  const std::lock_guard lock(mutex_);
  if (!ended.ok()) {
    reports_refused_ = !ended.error().retryable();
    return NoteError(ended.error());
  }
  NoteAnswer();
  ended_ = true;
}

void TrialReporter::SendHeartbeat() {
  const auto trial = service_.Heartbeat(job_id_, trial_);
  const std::lock_guard lock(mutex_);
  next_heartbeat_ = clock_.Now() + heartbeat_interval_;
  // Reports are still sent after a refused heartbeat: the next one is answered with how the trial
  // ended.
  if (!trial.ok()) return NoteError(trial.error());
  trouble_.reset();
  pauses_.Reset();
}

void TrialReporter::NoteAnswer() {
  trouble_.reset();
  pauses_.Reset();
  next_heartbeat_ = clock_.Now() + heartbeat_interval_;  // A report is a sign of life, too.
  waiting_.pop_front();
}

void TrialReporter::NoteError(const Error& error) {
  if (!error.retryable()) {
    refusal_ = error;
    if (reports_refused_) waiting_.clear();
    return;
  }
  trouble_ = error;
  next_try_ = clock_.Now() + pauses_.NextPause();
}

}  // namespace zeus
