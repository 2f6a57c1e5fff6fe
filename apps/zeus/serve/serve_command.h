#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddServeCommand(CLI::App& app, Action& action);

}  // namespace zeus::cli
