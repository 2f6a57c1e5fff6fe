#include "zeus/device/sim/power_history.h"

#include <algorithm>

namespace zeus::sim {

Watts Regime::PowerAt(Seconds time) const {
  return profile.PowerAt(time - start) + thermal.LeakageAt(time - start);
}

Joules Regime::EnergyUntil(Seconds time) const {
  return profile.EnergyUntil(time - start) + thermal.LeakageUntil(time - start);
}

Joules Regime::EnergyBetween(Seconds begin, Seconds end) const {
  return EnergyUntil(end) - EnergyUntil(begin);
}

void PowerHistory::Push(const Regime& regime, Seconds end) {
  MakeRoom(end);
  At(size_) = regime;
  ++size_;
  end_ = end;
}

void PowerHistory::MakeRoom(Seconds now) {
  while (size_ > 1 && At(1).start < now - kReach) {
    first_ = (first_ + 1) % kCapacity;
    --size_;
  }
  if (size_ < kCapacity) return;
  const Regime& oldest = At(0);
  Regime& merged = At(1);
  const Seconds end = At(2).start;
  const Joules energy = oldest.EnergyUntil(merged.start) + merged.EnergyUntil(end);
  merged = {.start = oldest.start, .profile = ConstantProfile(energy / (end - oldest.start))};
  first_ = (first_ + 1) % kCapacity;
  --size_;
}

Joules PowerHistory::EnergyBetween(Seconds begin, Seconds end) const {
  Joules energy(0);
  Seconds to = end_;
  // From the newest back: windows are short.
  for (std::size_t i = size_; i-- > 0 && begin < to;) {
    const Regime& regime = At(i);
    const Seconds from = std::max(begin, regime.start);
    if (from < std::min(end, to)) energy += regime.EnergyBetween(from, std::min(end, to));
    to = regime.start;
  }
  const Seconds origin = size_ > 0 ? At(0).start : Seconds(0);
  if (begin < origin) energy += before_ * (std::min(end, origin) - begin);
  return energy;
}

}  // namespace zeus::sim
