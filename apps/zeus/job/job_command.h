#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddJobCommand(CLI::App& app, Action& action);

}  // namespace zeus::cli
