#pragma once

#include <cstdint>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// Time and energy of a stretch of training on the devices of this process.
struct SliceReading {
  Seconds time{0};
  Joules energy{0};
  Joules sigma{0};         // Without shared_sigma.
  Joules shared_sigma{0};  // Common to all slices: gain of the sensors.
  bool final = true;       // False while the sensors have yet to show what happened at its end.
};

// Measures slices one after the other: all that the optimiser needs of a monitor. One owner.
class SliceMeter {
 public:
  enum class Ticket : std::uint64_t {};

  virtual ~SliceMeter() = default;

  // `label` is the setting under test, as text.
  virtual Status Begin(const std::string& label) = 0;
  // Returns the reading of the open slice so far.
  virtual Result<SliceReading> Peek() = 0;
  virtual Result<Ticket> End() = 0;
  virtual void Cancel() = 0;

  // Returns the reading of an ended slice, as well as it is known by now. May be called until it is
  // final.
  virtual Result<SliceReading> Read(Ticket ticket) = 0;
};

}  // namespace zeus
