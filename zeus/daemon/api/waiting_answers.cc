#include "zeus/daemon/api/waiting_answers.h"

#include <algorithm>
#include <utility>

namespace zeus::daemon {

WaitingAnswers::WaitingAnswers(const Clock& clock)
    : clock_(clock),
      ticker_(std::make_unique<Ticker>("zeusd-waiting", [this] { return Step(); })) {}

WaitingAnswers::~WaitingAnswers() {
  ticker_.reset();
  GiveUpAll();
}

void WaitingAnswers::GiveUpAll() {
  std::multimap<std::string, Pointer> waiters;
  {
    const std::lock_guard lock(mutex_);
    waiters.swap(waiters_);
  }
  for (const auto& [topic, waiter] : waiters)
    if (!waiter->done.exchange(true)) waiter->response->Finish(waiter->request.give_up());
}

http::Answer WaitingAnswers::Wait(Request request) {
  if (auto answer = request.look()) return *std::move(answer);
  auto waiter = std::make_shared<Waiter>();
  waiter->until = clock_.Now() + request.timeout;
  waiter->request = std::move(request);
  const std::weak_ptr<Waiter> weak = waiter;
  waiter->response = std::make_shared<http::PushedResponse>([this, weak] {
    if (const auto left = weak.lock()) {
      left->done = true;
      Remove(left);
    }
  });
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& topic : waiter->request.topics) waiters_.emplace(topic, waiter);
    is_first = waiter->until < next_step_;
    if (is_first) next_step_ = waiter->until;
  }
  if (is_first) ticker_->Wake();
  // It may have changed before the waiter was known.
  LookAt(waiter);
  return {.pushed = waiter->response};
}

void WaitingAnswers::Notify(const std::string& topic) {
  std::vector<Pointer> found;
  {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = waiters_.equal_range(topic);
    for (auto entry = begin; entry != end; ++entry) found.push_back(entry->second);
  }
  for (const Pointer& waiter : found) LookAt(waiter);
}

std::size_t WaitingAnswers::size() const {
  const std::lock_guard lock(mutex_);
  return waiters_.size();
}

void WaitingAnswers::LookAt(const Pointer& waiter) {
  if (waiter->done) return;
  auto answer = waiter->request.look();
  if (!answer || waiter->done.exchange(true)) return;
  waiter->response->Finish(*std::move(answer));
  Remove(waiter);
}

void WaitingAnswers::Remove(const Pointer& waiter) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiters_, [&](const auto& entry) { return entry.second == waiter; });
}

TimePoint WaitingAnswers::Step() {
  const TimePoint now = clock_.Now();
  TimePoint next = Ticker::kWhenWoken;
  std::vector<Pointer> late;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [topic, waiter] : waiters_) {
      if (waiter->until <= now)
        late.push_back(waiter);
      else
        next = std::min(next, waiter->until);
    }
    next_step_ = next;
  }
  for (const Pointer& waiter : late) {
    if (!waiter->done.exchange(true)) waiter->response->Finish(waiter->request.give_up());
    Remove(waiter);
  }
  return next;
}

}  // namespace zeus::daemon
