#pragma once

#include <array>
#include <cstddef>

#include "zeus/base/units.h"

namespace zeus {

// How restless the power of a device has been of late, from the means of successive stretches.
// Trivially copyable. One owner.
class Variability {
 public:
  void Add(Watts power);

  // Typical deviation of one stretch from its neighbours. Single steps do not count: it is the
  // median that is taken.
  Watts Fast() const { return fast_; }

  // Standard deviation over the memory, if the power keeps changing: the sign of a load that the
  // sensor cannot follow. Zero for a load that steps from plateau to plateau.
  Watts Uneven() const { return uneven_; }

  // The power wanders up and down over many values: the sign of a load whose period is near that of
  // the sensor. Then what the sensor misses errs in the same direction for long.
  bool Drifting() const { return drifting_; }

  // Largest less smallest.
  Watts Range() const { return range_; }

 private:
  static constexpr std::size_t kMemory = 64;
  static constexpr std::size_t kRecent = 16;

  bool WandersNow(std::size_t size) const;
  Watts Back(std::size_t steps) const { return ring_[(count_ - 1 - steps) % kMemory]; }

  std::array<Watts, kMemory> ring_{};
  std::size_t count_ = 0;
  Watts fast_{0};
  Watts uneven_{0};
  Watts range_{0};
  bool drifting_ = false;
};

}  // namespace zeus
