#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

void AddServeCommand(Verb app, Action& action);

}  // namespace zeus::cli
