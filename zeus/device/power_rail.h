#pragma once

#include "zeus/device/energy_meter.h"

namespace zeus {

// A supply rail of a board (Jetson, Grace): power only, for the whole module or a part of it.
class PowerRail : public EnergyMeter {
 public:
  enum class Role {
    kTotal,  // Contains the other rails: never add it to them.
    kPart,
  };
  virtual Role role() const = 0;
};

}  // namespace zeus
