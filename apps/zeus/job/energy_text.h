#pragma once

#include <string>

#include "zeus/base/units.h"

namespace zeus::cli {

// "812 J", "12.3 kJ", "4.56 MJ": three digits, for costs and energies in tables.
std::string EnergyText(Joules energy);

// "8.4 s", "12.3 min", "4.1 h".
std::string TimeText(Seconds time);

}  // namespace zeus::cli
