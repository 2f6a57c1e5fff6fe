#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// The locked graphics clock of the GPUs of one engine, as the driver of a ClockGovernor turns it.
// One owner.
class ClockKnob {
 public:
  virtual ~ClockKnob() = default;

  // "graphics clock of gpu:0 to gpu:3"
  virtual const std::string& name() const = 0;

  // The clocks that can be locked, ascending. The last one is the highest that may be used.
  virtual Result<std::vector<Hertz>> Supported() = 0;

  // The clock at which the slowest of the GPUs runs now.
  virtual Result<Hertz> Present() = 0;

  // Returns true when the clock is ours to set, and false when the GPUs do not say yet: an idle one
  // does not report locks. kUnavailable names the GPU that another program has locked; the message
  // goes into GovernorSample::foreign.
  virtual Result<bool> IsOurs() = 0;

  // Another program has set the clock since the last Lock(): from now on IsOurs() asks the GPUs
  // again. Nothing is changed on them.
  virtual void Disown() = 0;

  // Locks all GPUs to this clock. kUnavailable while another program holds the clock.
  virtual Status Lock(Hertz clock) = 0;

  // Puts back what was found before the first Lock(); does nothing without one.
  virtual Status Release() = 0;
};

}  // namespace zeus
