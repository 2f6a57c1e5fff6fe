#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::water_filling {

// A measurement of a job at one power limit.
struct CurveSample {
  Watts limit{};                // Power limit of each of the job's GPUs.
  Seconds time{0};              // Time of a training step, an epoch, a request.
  std::optional<Watts> draw{};  // Mean power that one GPU draws; the limit where unknown.
  // Standard deviations, where they are known; else 2 % are assumed.
  std::optional<Seconds> time_sigma{};
  std::optional<Watts> draw_sigma{};
};

// A point of a curve.
struct CurvePoint {
  Watts limit{};
  double slowdown = 1;  // Time there over the time at the highest limit; at least 1.
  Watts draw{};
  Watts draw_sigma{};
};

// The slowdown that a power limit costs a job, and the draw of its GPUs under it.
//
// Slowdown never rises with the limit and draw never falls, whatever the measurements say: noise
// that goes the other way is averaged (isotonic regression, weighted by 1/sigma^2), because a
// budget would buy it as speed. Between the measured limits both are linear. Immutable.
class PowerCurve {
 public:
  // Makes the curve of at least one measurement. Limits may come in any order; measurements of one
  // limit are averaged. kInvalidArgument for numbers that are not finite or not positive.
  static Result<PowerCurve> FromSamples(std::span<const CurveSample> samples);

  // The GPU of a job of which nothing is known yet.
  struct Unknown {
    Watts lowest{};                // Lowest and
    Watts highest{};               // highest power limit of the GPU.
    std::optional<Watts> limit{};  // Where the job runs already: its limit
    std::optional<Watts> draw{};   // and what each of its GPUs draws.
  };
  // The mean of recorded curves, stretched to what the job seems to want: a job that draws less
  // than 95 % of its limit wants no more than it draws, any other at least its limit.
  static Result<PowerCurve> Assumed(const Unknown& gpu);

  const std::vector<CurvePoint>& points() const { return points_; }  // Ascending limits.
  Watts lowest() const { return points_.front().limit; }
  Watts highest() const { return points_.back().limit; }
  bool assumed() const { return assumed_; }

  // Limits below lowest() count as lowest(), those above highest() as highest().
  CurvePoint At(Watts limit) const;
  double SlowdownAt(Watts limit) const;
  Watts DrawAt(Watts limit) const;
  // Two standard deviations above the draw, so that it is exceeded with 2.3 % probability.
  Watts DrawBoundAt(Watts limit) const;
  // The lowest limit with at most this slowdown; nullopt when not even highest() has it.
  std::optional<Watts> LimitFor(double slowdown) const;

  // Sentences about measurements that contradict each other by more than their noise.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::vector<CurvePoint> points_{};
  std::vector<std::string> notes_{};
  bool assumed_ = false;
};

using SharedCurve = std::shared_ptr<const PowerCurve>;

}  // namespace zeus::water_filling
