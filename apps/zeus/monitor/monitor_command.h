#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddMonitorCommand(CLI::App& app, Action& action);

}  // namespace zeus::cli
