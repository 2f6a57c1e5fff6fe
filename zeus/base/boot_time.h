#pragma once

#include <functional>
#include <string>

#include "zeus/base/units.h"

namespace zeus {

// A moment that processes of one machine agree on, until it is started anew, and that nobody can
// set: time that the machine slept counts.
struct BootTime {
  std::string boot{};  // Which start of which machine; empty where that is not known.
  Seconds since{};
};

BootTime CurrentBootTime();
using BootClock = std::function<BootTime()>;

}  // namespace zeus
