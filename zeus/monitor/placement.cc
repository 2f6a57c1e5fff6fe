// An excess of energy in a stretch is work, or a pause, that takes some part of the stretch at its
// most. It may lie at the begin, at the end, anywhere, or right before given instants, each with a
// probability. For each of these places the share of the excess that was used by an instant is a
// piecewise linear function of time; Place() takes their mean and their spread at the few instants
// where a slope changes, and the curve is drawn between these.
#include "zeus/monitor/placement.h"

#include <algorithm>
#include <cmath>

namespace zeus {
namespace {

// The farthest place of an excess lies that many standard deviations from the mean, at most.
constexpr double kFarthest = 1.75;

// The share of the excess that was used by an instant, for each of the places. `part` is the share
// of the stretch that the excess takes at its extreme; all times are shares of the stretch.
class Places {
 public:
  Places(const Excess& excess, double part) : excess_(excess), part_(std::clamp(part, 1e-6, 1.0)) {
    const Seconds length = excess.end - excess.begin;
    for (const TimePoint instant : excess.instants)
      instants_.push_back(std::clamp((instant - excess.begin) / length, 0.0, 1.0));
  }

  // Where the slope of the mean changes.
  std::vector<double> Breaks() const {
    std::vector<double> breaks{part_, 0.5, 1 - part_};
    for (const double instant : instants_) {
      breaks.push_back(RampBegin(instant));
      breaks.push_back(instant);
    }
    std::ranges::sort(breaks);
    constexpr double kNear = 1e-4;
    std::erase_if(breaks, [last = 0.0](double time) mutable {
      const bool near = time - last < kNear || 1 - time < kNear;
      if (!near) last = time;
      return near;
    });
    breaks.push_back(1);
    return breaks;
  }

  struct Moments {
    double mean;
    double sigma;
  };
  Moments At(double time) const {
    const double early = std::min(1.0, time / part_);
    const double late = std::max(0.0, 1 - (1 - time) / part_);
    const double ended = BeforeInstants(time);
    const double mean = excess_.at_begin * early + excess_.at_end * late + excess_.anywhere * time +
                        excess_.before_instants * ended;
    // Anywhere means that either nearly all of it lies before the instant or nearly nothing does:
    // the most variance that a share between `late` and `early` with this mean can have.
    const double anywhere = time * time + std::max(0.0, (early - time) * (time - late));
    const double square = excess_.at_begin * early * early + excess_.at_end * late * late +
                          excess_.anywhere * anywhere + excess_.before_instants * ended * ended;
    // Two standard deviations need not reach further than the farthest place.
    const double farthest = std::max(early - mean, mean - late) / kFarthest;
    return {.mean = mean,
            .sigma = std::min(std::sqrt(std::max(0.0, square - mean * mean)), farthest)};
  }

 private:
  double RampBegin(double instant) const {
    return std::max(0.0, instant - part_ / static_cast<double>(instants_.size()));
  }
  // Equal parts right before each of the instants.
  double BeforeInstants(double time) const {
    double sum = 0;
    for (const double instant : instants_) {
      const double begin = RampBegin(instant);
      sum += instant <= begin ? 1.0 : std::clamp((time - begin) / (instant - begin), 0.0, 1.0);
    }
    return instants_.empty() ? time : sum / static_cast<double>(instants_.size());
  }

  const Excess& excess_;
  double part_;
  std::vector<double> instants_;
};

}  // namespace

std::vector<PlacedPoint> Place(const Excess& excess) {
  const Seconds length = excess.end - excess.begin;
  const Joules amount = (excess.power - excess.level) * length;
  const double part = (excess.power - excess.level) / (excess.extreme - excess.level);
  const Places places(excess, part);
  std::vector<PlacedPoint> points;
  for (const double time : places.Breaks()) {
    const Places::Moments moments = places.At(time);
    points.push_back({.time = time >= 1 ? excess.end : excess.begin + length * time,
                      .energy = excess.level * (length * time) + amount * moments.mean,
                      .sigma = Joules(std::abs(amount.value()) * moments.sigma)});
  }
  return points;
}

}  // namespace zeus
