#pragma once

#include <algorithm>
#include <cstddef>

#include "zeus/base/units.h"

namespace zeus {

// Splits the energy of one device among those who use it at the same time, by weight. Everything
// is booked exactly once: own shares + others + unattributed = device. One owner.
class AttributionLedger {
 public:
  // Energy counts from here.
  void StartFrom(Joules energy) { origin_ = energy_ = energy; }

  // The device has used `energy` in all; what came since the last call is booked by the weights
  // that held meanwhile. Energy does not decrease.
  void Advance(Joules energy) {
    const Joules used = energy - energy_;
    energy_ = energy;
    const double weights = own_weight_ + others_weight_;
    if (weights <= 0) {
      unattributed_ += used;
      return;
    }
    if (own_lanes_ > 1 || (own_lanes_ > 0 && others_weight_ > 0)) shared_ += used;
    per_weight_ += used / weights;
    others_ += used * (others_weight_ / weights);
  }

  // Of all own lanes together.
  void SetOwn(std::size_t lanes, double weight) {
    own_lanes_ = lanes;
    own_weight_ = std::max(weight, 0.0);
  }
  void SetOthers(double weight) { others_weight_ = std::max(weight, 0.0); }

  // What a share of weight 1 has received so far: a window's part is its weight times the growth
  // of this while the window was on top of its lane.
  Joules per_weight() const { return per_weight_; }

  // A share that was received and is given back.
  void Return(Joules share) { unattributed_ += share; }

  // Used while an own lane was not alone on the device.
  Joules shared() const { return shared_; }
  Joules device() const { return energy_ - origin_; }
  Joules energy() const { return energy_; }  // As it was last told.
  Joules unattributed() const { return unattributed_; }
  Joules others() const { return others_; }

 private:
  std::size_t own_lanes_ = 0;
  double own_weight_ = 0;
  double others_weight_ = 0;
  Joules origin_{0};
  Joules energy_{0};
  Joules per_weight_{0};
  Joules unattributed_{0};
  Joules others_{0};
  Joules shared_{0};
};

}  // namespace zeus
