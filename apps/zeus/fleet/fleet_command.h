#pragma once

#include "apps/zeus/commands.h"

namespace zeus::cli {

void AddFleetCommand(Verb app, Action& action);  // Many nodes on one page.

}  // namespace zeus::cli
