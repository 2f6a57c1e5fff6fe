#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus sim`: starts, inspects and stops simulated nodes, and puts load and faults on their GPUs.
void AddSimCommand(Verb app, Action& action);

}  // namespace zeus::cli
