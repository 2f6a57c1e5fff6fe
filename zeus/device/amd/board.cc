#include "zeus/device/amd/board.h"

namespace zeus::amd {

bool StillCounter::Moved(TimePoint now, std::uint64_t ticks) {
  if (last_ == ticks) return false;
  last_ = ticks;
  still_since_ = now;
  stale_ = false;
  return true;
}

void StillCounter::SawPower(TimePoint now, std::optional<Watts> power) {
  if (stale_) return;
  if (!power || *power <= kIdlePower) {
    still_since_ = now;
  } else if (now - still_since_ > kLongestStillness) {
    stale_ = true;
    ++spells_;
  }
}

}  // namespace zeus::amd
