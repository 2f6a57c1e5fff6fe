#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddKnobsCommand(CLI::App& app, Action& action);

}  // namespace zeus::cli
