#include "zeus/device/amd/still_counter.h"

namespace zeus::amd {

bool StillCounter::Moved(std::uint64_t ticks) {
  if (last_ == ticks) return false;
  last_ = ticks;
  loaded_since_.reset();
  stale_ = false;
  return true;
}

void StillCounter::SawPower(TimePoint now, std::optional<Watts> power) {
  if (stale_) return;
  if (!power || *power <= kIdlePower) {
    loaded_since_.reset();
    return;
  }
  if (!loaded_since_) loaded_since_ = now;
  if (now - *loaded_since_ > kPatience) {
    stale_ = true;
    ++spells_;
  }
}

}  // namespace zeus::amd
