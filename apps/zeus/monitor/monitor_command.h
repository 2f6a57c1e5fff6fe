#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddMonitorCommand(Verb app, Action& action);

}  // namespace zeus::cli
