#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddDiffCommand(Verb app, Action& action);

}  // namespace zeus::cli
