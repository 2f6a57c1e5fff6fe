#include "zeus/optimizer/shift/signal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace zeus {
namespace {

constexpr std::chrono::days kDay(1);
// Bounds the number of steps that may be assumed: a year of five-minute steps.
constexpr std::size_t kMostSteps = 120'000;

}  // namespace

Result<Signal> Signal::Create(std::vector<Step> steps, WallTime until) {
  const auto wrong = [](const Step& step) {
    return !std::isfinite(step.value) || !std::isfinite(step.sigma) || step.sigma < 0;
  };
  const auto left_out = static_cast<std::size_t>(std::erase_if(steps, wrong));
  std::erase_if(steps, [until](const Step& step) { return step.from >= until; });
  if (steps.empty()) {
    if (left_out > 0)
      return InvalidArgument(fmt::format("none of {} values is a finite number", left_out));
    return InvalidArgument("no values");
  }
  std::ranges::stable_sort(steps, {}, &Step::from);
  std::vector<Step> unique;
  unique.reserve(steps.size());
  for (const Step& step : steps) {
    if (!unique.empty() && unique.back().from == step.from) {
      unique.back() = step;
    } else {
      unique.push_back(step);
    }
  }
  return Signal(std::move(unique), until, left_out);
}

Signal::Signal(std::vector<Step> steps, WallTime end, std::size_t left_out)
    : steps_(std::move(steps)), end_(end), known_until_(end), left_out_(left_out) {
  SumUp();
}

void Signal::SumUp() {
  before_.resize(steps_.size());
  double sum = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    before_[i] = sum;
    sum += steps_[i].value * Seconds(StepEnd(i) - steps_[i].from).count();
  }
}

WallTime Signal::StepEnd(std::size_t index) const {
  return index + 1 < steps_.size() ? steps_[index + 1].from : end_;
}

std::size_t Signal::IndexAt(WallTime time) const {
  const auto next = std::ranges::upper_bound(steps_, time, {}, &Step::from);
  return next == steps_.begin() ? 0 : static_cast<std::size_t>(next - steps_.begin()) - 1;
}

double Signal::IntegralUntil(WallTime time) const {
  // The first step also holds before it begins.
  const WallTime inside = std::min(time, end_);
  const std::size_t index = IndexAt(inside);
  return before_[index] + steps_[index].value * Seconds(inside - steps_[index].from).count();
}

double Signal::Integral(WallTime from, WallTime until) const {
  return IntegralUntil(until) - IntegralUntil(from);
}

double Signal::Mean(WallTime from, WallTime until) const {
  const WallTime first = std::min(from, end_);
  const WallTime last = std::min(until, end_);
  return last > first ? Integral(first, last) / Seconds(last - first).count() : At(first);
}

void Signal::ExtendTo(WallTime end) {
  if (end <= end_) return;
  const WallTime known_end = end_;
  const double mean = Mean(begin(), known_end);
  double variance = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const double length = Seconds(StepEnd(i) - steps_[i].from).count();
    variance += length * (steps_[i].value - mean) * (steps_[i].value - mean);
  }
  const double spread = std::sqrt(variance / Seconds(known_end - begin()).count());
  if (known_end - begin() < kDay) {
    steps_.push_back({.from = known_end, .value = mean, .sigma = spread});
  } else {
    // The steps of the last known day, again and again.
    const WallTime day_begin = known_end - kDay;
    const std::size_t first = IndexAt(day_begin);
    const std::size_t known = steps_.size();
    for (auto days = kDay; day_begin + days < end && steps_.size() < kMostSteps; days += kDay) {
      for (std::size_t i = first; i < known; ++i) {
        const WallTime from = std::max(steps_[i].from, day_begin) + days;
        if (from >= end) break;
        steps_.push_back({.from = from, .value = steps_[i].value, .sigma = spread});
      }
    }
  }
  end_ = end;
  SumUp();
}

double Signal::Cost(std::span<const PowerPiece> pieces) const {
  double cost = 0;
  for (const PowerPiece& piece : pieces)
    cost += piece.power.value() * Integral(piece.from, piece.until);
  return cost / kJoulesPerKilowattHour;
}

void Signal::AddEnergy(const PowerPiece& piece, double sign, std::span<double> energy) const {
  for (std::size_t i = IndexAt(piece.from); i < steps_.size(); ++i) {
    const WallTime from = std::max(piece.from, i == 0 ? piece.from : steps_[i].from);
    const WallTime until =
        i + 1 < steps_.size() ? std::min(piece.until, steps_[i + 1].from) : piece.until;
    if (until > from) energy[i] += sign * piece.power.value() * Seconds(until - from).count();
    if (until == piece.until) break;
  }
}

double Signal::SigmaOfDifference(std::span<const PowerPiece> a,
                                 std::span<const PowerPiece> b) const {
  // The energy by which the two differ in each step.
  std::vector<double> energy(steps_.size());
  for (const PowerPiece& piece : a) AddEnergy(piece, 1, energy);
  for (const PowerPiece& piece : b) AddEnergy(piece, -1, energy);
  // The sum over all pairs in one pass: `earlier` holds the errors of the steps before, faded by
  // their distance.
  double variance = 0;
  double earlier = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (i > 0) earlier *= std::exp(-Seconds(steps_[i].from - steps_[i - 1].from) / kCorrelation);
    const double error = energy[i] * steps_[i].sigma;
    variance += error * error + 2 * error * earlier;
    earlier += error;
  }
  return std::sqrt(std::max(variance, 0.0)) / kJoulesPerKilowattHour;
}

}  // namespace zeus
