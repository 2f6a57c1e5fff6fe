#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddJobCommand(Verb app, Action& action);

}  // namespace zeus::cli
