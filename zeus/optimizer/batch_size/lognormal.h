#pragma once

namespace zeus {

// X with ln X normally distributed.
struct Lognormal {
  double mean_log = 0.0;
  double variance_log = 0.0;

  double Mean() const;
  // E[(limit - X)^+]: by how much X stays below the limit, on average.
  double ExpectedShortfall(double limit) const;

  // The same for an X of which it is known that X > floor >= 0. Not numbers when that is out of the
  // question.
  double MeanAbove(double floor) const;
  double ExpectedShortfallAbove(double floor, double limit) const;
};

}  // namespace zeus
