#include "zeus/monitor/slot_follower.h"

#include <algorithm>
#include <cmath>

namespace zeus::activity {
namespace {

TimePoint ToTime(double seconds) { return TimePoint(Seconds(seconds)); }

// The file may hold anything; a wrong number must not spread.
double SaneWeight(double weight) { return std::isfinite(weight) && weight > 0 ? weight : 0; }

// Not a number, or of a clock that ran before the machine was started again.
TimePoint SaneTime(double seconds, TimePoint now) {
  const TimePoint time = ToTime(seconds);
  return time <= now + kSilence ? time : now;
}

}  // namespace

SlotFollower::SlotFollower(const Slot& slot, const Journal& journal,
                           std::span<const unsigned> device_of_key, unsigned device_count)
    : slot_(slot), journal_(journal), device_of_key_(device_of_key), weights_(device_count, 0.0) {}

TimePoint SlotFollower::LastSign() const {
  return std::max(newest_, ToTime(slot_.heartbeat.load(std::memory_order_acquire)));
}

bool SlotFollower::Alive(TimePoint now) const {
  const TimePoint sign = LastSign();
  return slot_.owned() && sign >= now - kSilence && sign <= now + kSilence;
}

void SlotFollower::Add(TimePoint time, unsigned device, double weight) {
  if (weights_[device] == weight) return;
  weights_[device] = weight;
  if (!news_.empty()) time = std::max(time, news_.back().time);
  news_.push_back({.time = time, .device = device, .weight = weight});
}

// Weights are absolute: an event after `position_` whose weight is already in the table is told
// again when it is read, and changes nothing then.
void SlotFollower::TakeWeights(TimePoint time) {
  position_ = slot_.published.load(std::memory_order_acquire);
  for (std::size_t key = 0; key < kKeys; ++key) {
    const unsigned device = device_of_key_[key];
    if (device == kNotOurs) continue;
    Add(time, device, SaneWeight(journal_.weights[key].load(std::memory_order_acquire)));
  }
}

void SlotFollower::StartAt(TimePoint now) {
  silent_ = !Alive(now);
  if (silent_) {
    position_ = slot_.published.load(std::memory_order_acquire);
  } else {
    TakeWeights(now);
  }
}

// False when events were overwritten before or while they were read.
bool SlotFollower::ReadEvents(TimePoint now) {
  const std::uint64_t published = slot_.published.load(std::memory_order_acquire);
  const std::uint64_t begin = position_;
  if (published < begin || published - begin > kEvents) return false;
  for (; position_ < published; ++position_) {
    const Event& event = journal_.events[position_ % kEvents];
    const double time = event.time.load(std::memory_order_acquire);
    const double weight = event.weight.load(std::memory_order_acquire);
    const std::uint64_t key = event.key.load(std::memory_order_acquire);
    const std::uint64_t reserved = slot_.reserved.load(std::memory_order_acquire);
    if (reserved > position_ + kEvents) return false;
    newest_ = std::max(newest_, SaneTime(time, now));
    const unsigned device = key < kKeys ? device_of_key_[key] : kNotOurs;
    if (device != kNotOurs) Add(newest_, device, SaneWeight(weight));
  }
  return true;
}

void SlotFollower::Follow(TimePoint now) {
  if (!ReadEvents(now)) {
    ++overruns_;
    TakeWeights(std::min(LastSign(), now));
  }
  const bool was_silent = silent_;
  silent_ = !Alive(now);
  if (silent_) {
    for (unsigned device = 0; device < weights_.size(); ++device)
      Add(std::min(LastSign(), now), device, 0);
  } else if (was_silent) {
    // Stopped for a while and woken: what it did not take back holds again.
    TakeWeights(std::min(LastSign(), now));
  }
}

bool SlotFollower::MayUseOurs() const {
  for (std::size_t key = 0; key < kKeys; ++key) {
    if (device_of_key_[key] == kNotOurs) continue;
    if ((slot_.keys[key / 64].load(std::memory_order_relaxed) >> (key % 64) & 1) != 0) return true;
  }
  return false;
}

// For a process that uses a device the time of its death matters, so it is awaited until that is
// certain. One that does nothing may merely have no recorder thread.
TimePoint SlotFollower::KnownUntil(TimePoint now) const {
  if (silent_ || !MayUseOurs()) return now;
  const bool uses_ours =
      std::any_of(weights_.begin(), weights_.end(), [](double weight) { return weight > 0; });
  const TimePoint sign = std::min(now, LastSign());
  return uses_ours ? sign : std::max(sign, now - kPatience);
}

void SlotFollower::TakeUntil(TimePoint horizon, std::vector<News>& settled) {
  while (!news_.empty() && news_.front().time <= horizon) {
    settled.push_back(news_.front());
    news_.pop_front();
  }
}

}  // namespace zeus::activity
