#include "zeus/monitor/variability.h"

#include <algorithm>
#include <cmath>

namespace zeus {
namespace {

// Larger changes than this part of the power are real ones and no beat.
constexpr double kLargestBeat = 0.08;
// Values on end that make a level; fewer are noise.
constexpr int kRun = 3;

}  // namespace

void Variability::Add(Watts power) {
  ring_[count_ % kMemory] = power;
  ++count_;
  const std::size_t size = std::min(count_, kMemory);

  double sum = 0;
  double squares = 0;
  int changes = 0;
  Watts smallest = power;
  Watts largest = power;
  for (std::size_t i = 0; i < size; ++i) {
    const double value = Back(i).value();
    sum += value;
    squares += value * value;
    smallest = std::min(smallest, Back(i));
    largest = std::max(largest, Back(i));
    if (i + 1 < size && std::abs(value - Back(i + 1).value()) > 0.02 * std::abs(value)) ++changes;
  }
  const auto n = static_cast<double>(size);
  lowest_ = smallest;
  range_ = largest - smallest;
  change_rate_ = changes / n;
  // More than an eighth of the values moved: no plateaus.
  const bool restless = changes * 8 > static_cast<int>(size);
  uneven_ =
      restless ? Watts(std::sqrt(std::max(0.0, squares / n - (sum / n) * (sum / n)))) : Watts(0);

  drifting_ = restless && WandersNow(size);
  beat_ = BeatAround(sum / n, size);
  spikes_ = SpikesAmong(size);
  if (size >= 4) fast_ = MedianDeviation(size);
}

Watts Variability::MedianDeviation(std::size_t size) const {
  std::array<double, kRecent> second{};
  const std::size_t recent = std::min(size - 2, kRecent);
  for (std::size_t i = 0; i < recent; ++i)
    second[i] = std::abs((Back(i) + Back(i + 2) - Back(i + 1) * 2.0).value());
  const auto middle = second.begin() + static_cast<std::ptrdiff_t>(recent / 2);
  std::nth_element(second.begin(), middle, second.begin() + static_cast<std::ptrdiff_t>(recent));
  // The second difference of independent values has six times their variance; the median of its
  // magnitude is 0.674 standard deviations.
  return Watts(*middle / (0.674 * std::sqrt(6.0)));
}

Watts Variability::SpikesAmong(std::size_t size) const {
  double squares = 0;
  for (std::size_t i = 1; i + 1 < size; ++i) {
    const double newer = (Back(i) - Back(i - 1)).value();
    const double older = (Back(i) - Back(i + 1)).value();
    if (newer * older > 0) squares += std::pow(std::min(std::abs(newer), std::abs(older)), 2);
  }
  return Watts(std::sqrt(squares / static_cast<double>(size)));
}

Watts Variability::BeatAround(double mean, std::size_t size) const {
  if (range_.value() > kLargestBeat * mean) return Watts(0);
  double sum = 0;
  double lowest = 0;
  double highest = 0;
  // Values on end on each side of the middle: the memory may have cut a longer run.
  int run = 0;
  std::array<int, 2> longest{};
  bool above = false;
  const Watts middle = lowest_ + range_ / 2.0;
  for (std::size_t i = 0; i < size; ++i) {
    sum += Back(i).value() - mean;
    lowest = std::min(lowest, sum);
    highest = std::max(highest, sum);
    run = above == (Back(i) > middle) ? run + 1 : 1;
    above = Back(i) > middle;
    longest[above ? 1 : 0] = std::max(longest[above ? 1 : 0], run);
  }
  double swing = highest - lowest;
  const auto [shorter, longer] = std::minmax(longest[0], longest[1]);
  if (shorter >= kRun) swing = std::max(swing, range_.value() * longer / 2);
  return Watts(std::min(swing, mean / 2));
}

// Three moves on end in one direction, none of them a jump, are rare unless the load drifts.
bool Variability::WandersNow(std::size_t size) const {
  std::size_t runs = 0;
  int length = 0;
  bool rising = false;
  for (std::size_t i = 0; i + 1 < size; ++i) {
    const double move = (Back(i) - Back(i + 1)).value();
    const double size_of_move = std::abs(move) / std::max(range_.value(), 1e-9);
    const bool gentle = size_of_move > 0.01 && size_of_move < 0.5;
    length = !gentle ? 0 : (length > 0 && rising != (move > 0)) ? 1 : length + 1;
    rising = move > 0;
    if (length >= 3) ++runs;
  }
  return runs * 7 > size;
}

}  // namespace zeus
