#pragma once

#include <functional>
#include <string>

#include "zeus/base/units.h"

namespace zeus {

// A moment on which all processes of a machine agree until it is rebooted. Unlike the time of day
// it cannot be set, and time in which the machine slept counts.
struct BootTime {
  std::string boot{};  // Identifies this boot of this machine; empty when not known.
  Seconds since{};
};

BootTime CurrentBootTime();
using BootClock = std::function<BootTime()>;

}  // namespace zeus
