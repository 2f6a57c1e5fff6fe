#include "zeus/monitor/calibration/load_pattern.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace zeus::calibration {
namespace {

// Multiples of the golden ratio, taken modulo one, cover an interval as evenly as can be.
constexpr double kGoldenRatio = 0.61803398874989485;
constexpr double kVariation = 0.25;

}  // namespace

void LoadPattern::Add(TimePoint time, LoadState state) {
  const LoadState present = switches_.empty() ? LoadState::kIdle : switches_.back().state;
  if (state == present) return;
  busy_before_.push_back(BusyTime(time));
  switches_.push_back({time, state});
}

Seconds LoadPattern::BusyTime(TimePoint time) const {
  const auto later = std::ranges::upper_bound(switches_, time, {}, &Switch::time);
  if (later == switches_.begin()) return Seconds(0);
  const auto index = static_cast<std::size_t>(later - switches_.begin()) - 1;
  const Switch& last = switches_[index];
  return busy_before_[index] +
         (last.state == LoadState::kBusy ? Seconds(time - last.time) : Seconds(0));
}

double LoadPattern::BusyShare(TimePoint begin, TimePoint end) const {
  return (BusyTime(end) - BusyTime(begin)) / (end - begin);
}

std::vector<Seconds> SquareWave(Seconds period, Seconds duration) {
  std::vector<Seconds> lengths;
  Seconds total(0);
  for (int i = 0; total < duration; ++i) {
    const double position = std::fmod(i * kGoldenRatio, 1.0);
    const Seconds length = period / 2 * (1 + kVariation * (2 * position - 1));
    lengths.push_back(std::min(length, duration - total));
    total += length;
  }
  return lengths;
}

}  // namespace zeus::calibration
