#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// zeus calibrate: measures how the sensors of GPUs behave and stores the result for the monitor.
void AddCalibrateCommand(Verb app, Action& action);

}  // namespace zeus::cli
