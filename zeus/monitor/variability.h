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

  Watts Lowest() const { return lowest_; }
  Watts Highest() const { return lowest_ + range_; }
  Watts Range() const { return range_; }

  // Share of the values that differ from the one before. Zero for a steady load.
  double ChangeRate() const { return change_rate_; }

  // Root mean square of values that stick out from both of their neighbours: bursts of work that
  // are shorter than the time between two values. Steps from plateau to plateau do not count.
  Watts Spikes() const { return spikes_; }

  // A load that swings a little faster than the sensor updates, or a little more slowly than twice
  // as fast, shows as small changes with long pauses between them. The energy by which it swings
  // inside an update is what these changes add up to: largest less smallest sum of deviations from
  // the mean, times the length of one update. Zero if the changes are too large to be a beat.
  Watts Beat() const { return beat_; }

 private:
  static constexpr std::size_t kMemory = 64;
  static constexpr std::size_t kRecent = 16;

  bool WandersNow(std::size_t size) const;
  Watts BeatAround(double mean, std::size_t size) const;
  Watts SpikesAmong(std::size_t size) const;
  Watts MedianDeviation(std::size_t size) const;
  Watts Back(std::size_t steps) const { return ring_[(count_ - 1 - steps) % kMemory]; }

  std::array<Watts, kMemory> ring_{};
  std::size_t count_ = 0;
  Watts fast_{0};
  Watts uneven_{0};
  Watts lowest_{0};
  Watts range_{0};
  Watts spikes_{0};
  Watts beat_{0};
  double change_rate_ = 0;
  bool drifting_ = false;
};

}  // namespace zeus
