#pragma once

#include <cstddef>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus::cli {

// How well is known when epochs ended: programs that buffer their output tell of several at once.
enum class EpochTiming {
  kKnown,    // Its end was seen as it happened.
  kLumped,   // Ended some time before, together with others.
  kTooSoon,  // Belongs to the lump before it.
};

// Tells epochs that were seen as they ended from those that came in a lump. One owner.
class EpochArrivals {
 public:
  explicit EpochArrivals(TimePoint begun) : last_(begun), begun_(begun) {}

  // That many epochs were read together now, `blind` after it was last looked for some.
  EpochTiming Judge(std::size_t epochs, TimePoint now, Seconds blind);
  // When they last did; the begin at first.
  TimePoint last() const { return last_; }

 private:
  TimePoint last_;
  TimePoint begun_;
  std::size_t epochs_ = 0;  // So far.
};

}  // namespace zeus::cli
