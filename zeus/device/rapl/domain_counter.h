#pragma once

#include <optional>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/energy_meter.h"

namespace zeus::rapl {

// The energy of one RAPL domain (a package, the memory of a package), whatever interface of the
// kernel it is read through. Thread-safe.
class DomainCounter {
 public:
  virtual ~DomainCounter() = default;

  virtual Result<EnergyReading> Read() = 0;

  // See EnergyMeter::LongestReadInterval().
  virtual std::optional<Seconds> LongestReadInterval() const = 0;
};

}  // namespace zeus::rapl
