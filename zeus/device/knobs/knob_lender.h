#pragma once

#include <memory>

#include "zeus/base/result.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/device/knobs/knob_actuator.h"

namespace zeus {

// Lends the knobs of a device that another process turns: the node daemon. The lease of a knob ends
// with this process, however that ends, and the lender puts the knob back then, so that neither a
// journal nor a guard is needed here. Thread-safe.
class KnobLender {
 public:
  virtual ~KnobLender() = default;

  // Nothing is asked of the lender before the first Apply(). The lender must outlive the actuator.
  virtual Result<std::unique_ptr<KnobActuator>> Borrow(KnobKind kind) = 0;
};

}  // namespace zeus
