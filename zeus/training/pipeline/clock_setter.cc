#include "zeus/training/pipeline/clock_setter.h"

#include "zeus/base/log.h"

namespace zeus {

ClockSetter::ClockSetter(Knob& knob)
    : knob_(knob), thread_("zeus-clock", [this] { return Step(); }) {}

void ClockSetter::Request(Hertz clock) {
  {
    const std::lock_guard lock(mutex_);
    if (wanted_ == clock) return;
    wanted_ = clock;
  }
  thread_.Wake();
}

void ClockSetter::WaitUntilDone() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return applied_ == wanted_; });
}

std::optional<Error> ClockSetter::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

std::int64_t ClockSetter::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

// A request that came while the driver worked has woken the thread again, so one change per step is
// enough.
TimePoint ClockSetter::Step() {
  std::optional<Hertz> clock;
  {
    const std::lock_guard lock(mutex_);
    if (wanted_ != applied_) clock = wanted_;
  }
  if (clock) Conclude(*clock, knob_.Set(*clock));
  return Ticker::kWhenWoken;
}

void ClockSetter::Conclude(Hertz clock, const Status& outcome) {
  const std::lock_guard lock(mutex_);
  applied_ = clock;
  ++changes_;
  trouble_.reset();
  if (!outcome.ok()) {
    trouble_ = outcome.error();
    if (!complained_) log::Warning("{}", outcome.error().message);
    complained_ = true;
  }
  done_.notify_all();
}

}  // namespace zeus
