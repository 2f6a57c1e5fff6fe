#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddKnobsCommand(Verb app, Action& action);

}  // namespace zeus::cli
