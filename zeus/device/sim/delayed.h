#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "zeus/base/units.h"

namespace zeus::sim {

// A setting whose changes take effect later: what was requested, what is in effect, and the
// changes on their way, which arrive in the order in which they were requested. Trivially
// copyable. One owner.
template <class T>
class Delayed {
 public:
  explicit Delayed(const T& value) : requested_(value), effective_(value) {}

  const T& requested() const { return requested_; }
  const T& effective() const { return effective_; }

  // When too many changes are on their way the last one is replaced.
  void Request(const T& value, Seconds arrival) {
    requested_ = value;
    if (size_ == changes_.size()) {
      changes_[size_ - 1].value = value;
      return;
    }
    if (size_ > 0) arrival = std::max(arrival, changes_[size_ - 1].arrival);
    changes_[size_++] = {.value = value, .arrival = arrival};
  }

  // In effect at once; changes on their way are lost.
  void Force(const T& value) {
    requested_ = effective_ = value;
    size_ = 0;
  }

  Seconds next_arrival() const {
    return size_ > 0 ? changes_[0].arrival : Seconds(std::numeric_limits<double>::infinity());
  }

  void ApplyDue(Seconds now) {
    while (size_ > 0 && changes_[0].arrival <= now) {
      effective_ = changes_[0].value;
      std::copy(changes_.begin() + 1, changes_.begin() + size_, changes_.begin());
      --size_;
    }
  }

 private:
  struct Change {
    T value;
    Seconds arrival;
  };

  T requested_;
  T effective_;
  std::array<Change, 8> changes_{};
  std::size_t size_ = 0;
};

}  // namespace zeus::sim
